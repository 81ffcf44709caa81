"""The WebSocket of a session: a client watches the session and sends commands to it.

Each socket has two tasks, the subscription and the command handler. A run continues when the client disconnects. A
client that does not read is sent nothing further until it reads again, and then catches up from the store. Pings are
sent by uvicorn.
"""

import asyncio
import math
from contextlib import suppress

from starlette.websockets import WebSocket, WebSocketState

from limelight.errors import (
    BadRequest,
    InvalidBody,
    LimelightError,
    RequestError,
    SessionNotFound,
    TooManyRequests,
    Unauthorized,
)
from limelight.models import LIVE_STATES, LOCAL_OWNER, Cursor, Session, SessionRef
from limelight.runs.limits import RETRY_AFTER_SECONDS
from limelight.runs.viewer import Format
from limelight.server.auth.authenticator import Caller
from limelight.server.endpoint import check_cursor
from limelight.server.middleware.root_path import root_of
from limelight.server.open_streams import Kind
from limelight.server.rate_limit import (
    MESSAGE_BURST,
    MESSAGES_PER_SECOND,
    REFUSAL_DELAY_SECONDS,
    USER_MESSAGE_BURST,
    USER_MESSAGES_PER_SECOND,
)
from limelight.server.runtime import Runtime
from limelight.server.token_bucket import TokenBucket
from limelight.server.v2.commands import CommandHandler, is_signal
from limelight.server.v2.sender import PACKED, ClientDisconnected, Sender, SocketContext, packed_records, socket_framing
from limelight.server.v2.sessions import INVALID_STEPS, get_or_create_session
from limelight.server.v2.subscription import Subscription

POLICY_VIOLATION = 1008
INTERNAL_ERROR = 1011
SERVICE_RESTART = 1012
TRY_AGAIN_LATER = 1013
SESSION_DELETED = 4404
TOO_MANY_MESSAGES = f"a socket takes {MESSAGE_BURST} messages at once and {MESSAGES_PER_SECOND} per second: send fewer"
TOO_MANY_USER_MESSAGES = (
    f"the sockets of a user take {USER_MESSAGE_BURST} messages at once and {USER_MESSAGES_PER_SECOND:g} per second"
)
NOT_AUTHORIZED = "the key that opened this socket is no longer valid"


class SessionSocket:
    """One WebSocket connection, from its handshake to its close."""

    kind: Kind = "socket"

    def __init__(self, websocket: WebSocket, runtime: Runtime) -> None:
        self._websocket = websocket
        self._runtime = runtime
        caller: Caller = websocket.state.caller
        self._user = caller.user
        self._ref = SessionRef(self._user.user_id, websocket.path_params["session_id"])
        self._sender = Sender(websocket, self._ref.session_id, runtime.metrics.count_refusal)
        self._subscription: Subscription | None = None
        self.format = ""
        self.is_still_authorized = websocket.state.is_still_authorized
        self._revoked: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        clock = asyncio.get_running_loop().time
        self._message_bucket = TokenBucket(MESSAGE_BURST, MESSAGES_PER_SECOND, clock)
        self._signal_bucket = TokenBucket(MESSAGE_BURST, MESSAGES_PER_SECOND, clock)
        self.last_sent = math.inf  # disables heartbeats: uvicorn pings sockets

    def ping(self) -> None: ...

    def revoke(self) -> None:
        if not self._revoked.done():
            self._revoked.set_result(None)

    def close(self) -> None:
        if self._subscription is not None:
            self._subscription.close()

    async def serve(self) -> None:
        with suppress(ClientDisconnected):
            await self._sender.accept()
            try:
                format_, after = self._format(), self._after()
                if format_.name == PACKED:
                    self._sender.framing = socket_framing(self._ref.session_id, packed=True)
                with self._runtime.reserve_stream(self._ref.owner):
                    await self._open_session(after)
                # The reservation has ended. Do not await anything before the viewer is entered, which counts instead.
                await self._serve_session(format_, after)
            except ClientDisconnected:
                raise
            except Exception as error:
                await self._close_with_error(error)

    def _format(self) -> Format:
        name = self._websocket.query_params.get("format", "v2")
        if name not in ("v2", "records"):
            raise BadRequest(f"format is v2 or records here, not {name[:50]!r}", path="format")
        root = root_of(self._websocket.scope)
        return packed_records(root) if self._is_packed(name) else self._runtime.format(name, root)

    def _is_packed(self, format_: str) -> bool:
        packed = self._websocket.query_params.get("packed", "0")
        if packed not in ("0", "1"):
            raise BadRequest(f"packed is 1 or 0, not {packed[:50]!r}", path="packed")
        if packed == "1" and format_ != "records":
            raise BadRequest("packed=1 needs format=records: other formats are not packed", path="packed")
        return packed == "1"

    def _after(self) -> Cursor | None:
        after = self._websocket.query_params.get("after")
        return None if after is None else Cursor.parse(after)

    async def _open_session(self, after: Cursor | None) -> None:
        """Create the session of the socket if it does not exist.

        Raises RequestError if the query parameters of the socket's URL are invalid.
        """
        query = self._websocket.query_params
        steps = query.get("max_steps")
        if steps is not None and not (steps.isascii() and steps.isdecimal() and len(steps) < 10):
            raise InvalidBody(INVALID_STEPS, path="max_steps")
        session = await self._runtime.store.session(self._ref)
        if after is not None:
            check_cursor(after, 0 if session is None else session.last_seq)
        agent_type = query.get("agent_type") or None  # an empty value counts as missing
        await get_or_create_session(self._runtime, self._ref, agent_type, None if steps is None else int(steps))

    async def _serve_session(self, format_: Format, after: Cursor | None) -> None:
        context = SocketContext(self._runtime, self._ref, self._user, format_, self._sender)
        with Subscription(context) as subscription:
            # Read the session after the viewer was entered: the viewer notices all later changes, including a deletion.
            session = await self._runtime.store.session(self._ref)
            if session is None:
                await self._close_deleted()
                return
            start = after or await self._start_cursor(session)
            handler = CommandHandler(context, subscription.resume)
            self._subscription, self.format = subscription, format_.name
            self._runtime.open_streams.add(self)
            try:
                if self._runtime.open_streams.is_closing:
                    subscription.close()
                await subscription.send_initial_state(session)
                await self._run_tasks(subscription, start, handler)
            finally:
                self._runtime.open_streams.remove(self)

    async def _start_cursor(self, session: Session) -> Cursor:
        """Return the cursor from which a client gets frames if it has connected without a cursor.

        It is the beginning of the run that was live when `session` was read, or else the end of the log.
        """
        run = None if session.run_id is None else await self._runtime.store.run(session.run_id)
        is_live = session.run_state in LIVE_STATES
        return Cursor(run.first_seq - 1 if run is not None and is_live else session.last_seq)

    async def _run_tasks(self, subscription: Subscription, start: Cursor, handler: CommandHandler) -> None:
        """Run the subscription and the command handler until one ends, or the client is not authorized any more.

        Then close the socket.
        """
        sending = asyncio.create_task(subscription.run(start))
        receiving = asyncio.create_task(self._receive(handler))
        ends: set[asyncio.Future[object]] = {sending, receiving, self._revoked}  # pyright: ignore[reportAssignmentType]
        try:
            await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
            if self._revoked.done():
                sending.cancel()  # sends nothing further, and frees the sender's lock
                await self._close_with_error(Unauthorized(NOT_AUTHORIZED))
            elif receiving.done():
                await self._close_after_receiving(receiving)
            else:
                await self._close_after_sending(sending)
        finally:
            for task in (sending, receiving):
                task.cancel()
            await asyncio.gather(sending, receiving, return_exceptions=True)

    async def _close_after_receiving(self, receiving: "asyncio.Task[None]") -> None:
        try:
            receiving.result()
        except (Unauthorized, TooManyRequests) as error:
            await self._close_with_error(error)

    async def _close_after_sending(self, sending: "asyncio.Task[bool]") -> None:
        try:
            session_exists = sending.result()
        except ClientDisconnected:
            raise
        except Exception as error:
            await self._close_with_error(error)
        else:
            if session_exists:
                await self._sender.close(SERVICE_RESTART, "the server is shutting down")
            else:
                await self._close_deleted()

    async def _close_with_error(self, error: Exception) -> None:
        """Send an error frame, and close the socket with a code that says whether a reconnect may succeed."""
        reply = await self._sender.send_error(error)
        await self._sender.close(close_code(error), reply.error_code)

    async def _close_deleted(self) -> None:
        await self._sender.send_error(SessionNotFound("Session was deleted"))
        await self._sender.close(SESSION_DELETED, "session deleted")

    async def _receive(self, handler: CommandHandler) -> None:
        while self._websocket.client_state is WebSocketState.CONNECTED:
            message = await self._websocket.receive()
            if message["type"] == "websocket.receive":
                await self._count_message(message.get("text"))
                if not await self.is_still_authorized():
                    raise Unauthorized(NOT_AUTHORIZED)
                await handler.handle(message.get("text"))
                await asyncio.sleep(0)  # let other tasks run between messages

    async def _count_message(self, text: str | None) -> None:
        """Count a message for the socket and for its user. Raises TooManyRequests, which closes the socket.

        Stop and decisions are never refused. They have a budget of their own, and are delayed beyond it.
        """
        if is_signal(text):
            if not self._signal_bucket.spend():
                await asyncio.sleep(REFUSAL_DELAY_SECONDS)
            return
        if not self._message_bucket.spend():
            raise TooManyRequests(TOO_MANY_MESSAGES, retry_after=RETRY_AFTER_SECONDS)
        user_id = self._user.user_id
        if user_id != LOCAL_OWNER and not self._runtime.message_buckets.spend(user_id):
            raise TooManyRequests(TOO_MANY_USER_MESSAGES, retry_after=RETRY_AFTER_SECONDS)


def close_code(error: Exception) -> int:
    """Return the code with which a socket is closed after an error.

    It is TRY_AGAIN_LATER if a retry may succeed, POLICY_VIOLATION if the client caused the error, else INTERNAL_ERROR.
    """
    if isinstance(error, LimelightError) and error.retry_after:
        return TRY_AGAIN_LATER
    return POLICY_VIOLATION if isinstance(error, RequestError) else INTERNAL_ERROR
