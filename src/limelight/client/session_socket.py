"""A session's WebSocket, which yields live messages, sends commands, and reconnects when the connection is lost.

One task receives. It puts items into a queue, from which the caller takes them; while the queue is full, it stops
receiving, which makes the server wait. Answers to commands arrive on the same connection. So, if a caller waits for an
answer while the queue stays full, the task discards items, and a new connection fetches them again after the last item
that was queued. `Client.connect` creates it.
"""

import asyncio
import uuid
from collections.abc import Iterable, Mapping
from contextlib import aclosing
from typing import TYPE_CHECKING, Any, Generic, Literal, Self, TypeVar, cast

from limelight.client.backoff import Backoff
from limelight.client.errors import ClientError, ConnectionLost, Limited, NotFound, ServerError, error_from_code
from limelight.client.http_transport import Transport, url_path
from limelight.client.models import Gap, Message, State
from limelight.client.run import DecisionMethods, IfBusy, Values, decision_fields
from limelight.client.socket_protocol import (
    Command,
    ErrorFrame,
    LogItem,
    PendingCommands,
    Position,
    StateFrame,
    parse_frame,
)
from limelight.client.websocket_connection import ConnectFailed, Connection, Disconnected, connect
from limelight.events import JsonValue, RequestedDecision

if TYPE_CHECKING:
    from limelight.client.client import Client

T = TypeVar("T")
SocketFormat = Literal["v2", "records"]
QUEUE_SIZE = 256
DISCARD_SECONDS = 0.25
"""Maximum time for which the queue of received items may stay full while a command waits for its answer."""
POLICY_VIOLATION, MESSAGE_TOO_BIG, SESSION_DELETED = 1008, 1009, 4404


class Socket(DecisionMethods, Generic[T]):
    """The socket of a session: an endless async iterator of messages or Records, changed states and gaps.

    Use as `async with`. Leaving the loop neither closes the socket nor stops the run; a later loop continues
    with the next item.
    """

    def __init__(
        self, client: "Client", transport: Transport, backoff: Backoff, session_id: str, params: dict[str, str]
    ) -> None:
        self.session_id = session_id
        self._client = client
        self._transport = transport
        self._backoff = backoff
        self._params = params
        self._position = Position(params.pop("after", None))
        self._queue: asyncio.Queue[T | State | Gap | None] = asyncio.Queue()
        """Items that were received and not yet taken. None marks the end."""
        self._wake = asyncio.Event()
        """An event that wakes the receiver while it waits for space: an item was taken, or a command was added."""
        self._commands = PendingCommands()
        self._send_lock = asyncio.Lock()
        self._first_state: State | None = None
        self._connection: Connection | None = None
        self._last_error: ErrorFrame | None = None
        """The last error frame, unless another reply followed. It explains the close code that may follow."""
        self._discarding = False
        self._receiver: asyncio.Task[None] | None = None
        self._resending: asyncio.Task[None] | None = None
        self._closed: Exception | None = None
        """The error that commands raise after the socket has ended; None before."""
        self._stop: Exception = StopAsyncIteration()
        """The exception that ends the iteration after the queued items."""

    async def __aenter__(self) -> Self:
        """Open the socket. Raises at once if no connection can be opened; retries if an open connection is lost."""
        if self._receiver is not None:
            raise RuntimeError("a socket is entered once: client.connect(…) creates another one")
        was_cut = False
        while self._first_state is None:
            try:
                await self._connect()
            except (ConnectFailed, ServerError) as error:
                if not was_cut:
                    lost = isinstance(error, ConnectFailed)
                    raise (self._transport.connection_lost(error) if lost else error) from error
                await self._backoff.wait(error)
            except Disconnected as error:
                was_cut = True
                self._raise_if_final(error)
                await self._backoff.wait(error)
        self._receiver = asyncio.create_task(self._receive_forever(), name=f"limelight-socket-{self.session_id}")
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Close the socket. Runs continue. An iteration yields the queued items and then ends."""
        self._end(self._transport.client_closed() if self._transport.closed else None)
        connection, self._connection = self._connection, None
        if self._receiver is not None:
            self._receiver.cancel()
            await asyncio.wait({self._receiver})
        if connection is not None:
            await connection.close()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> T | State | Gap:
        if self._discarding and self._queue.empty() and self._connection is not None:
            self._connection.abort()
        item = await self._queue.get()
        self._wake.set()
        if item is None:
            self._queue.put_nowait(None)  # so that other iterations end too
            raise self._stop
        return item

    async def send(
        self,
        query: str = "",
        *,
        if_busy: IfBusy = "error",
        request_id: str | None = None,
        input: Values | None = None,
        context: Values | None = None,
    ) -> str:
        """Send a query to the agent and return the id of its run. A lost query is sent again with the same id.

        `input` and `context` are those of `Client.start`.
        """
        request_id = request_id or f"req_{uuid.uuid4().hex}"
        values = {name: value for name, value in (("input", input), ("context", context)) if value is not None}
        return await self._command("query", query=query, if_busy=if_busy, request_id=request_id, **values)

    async def ping(self) -> float:
        """Send a ping and return the seconds until its pong."""
        began = asyncio.get_running_loop().time()
        await self._command("ping")
        return asyncio.get_running_loop().time() - began

    async def cancel(self, reason: str = "", *, request_id: str = "") -> None:
        """Stop the live run, or the query with this `request_id`. If that query is still queued, its `send` raises.

        Raises if there is no such run or query.
        """
        fields = {"request_id": request_id} if request_id else {}
        await self._command("cancel", reason=reason, **fields)

    async def decide(
        self,
        approval_id: str,
        decision: RequestedDecision,
        *,
        args: Mapping[str, Any] | None = None,
        reason: str = "",
        answer: JsonValue = None,
    ) -> str:
        """Answer an approval request, see `Client.decide`."""
        fields = decision_fields(decision, args, reason, answer)
        return await self._command("approve", approval_id=approval_id, **fields)

    async def state(self) -> State:
        """Ask the server for the state of the session: its agent, title, number of messages, newest run and cursor."""
        return await self._client.state(self.session_id)

    async def last_messages(self, limit: int | None = None, *, before: str | None = None) -> list[Message]:
        """Return the newest messages, see `Client.last_messages`."""
        return await self._client.last_messages(self.session_id, limit, before=before)

    async def _command(self, kind: str, /, **fields: Any) -> str:
        if self._receiver is None:
            raise RuntimeError("the socket is not open: async with client.connect(…) as socket")
        if self._closed is not None:
            raise self._closed
        command = Command(kind, fields)
        self._commands.add(command)
        self._wake.set()
        await self._send_commands()
        return await command.answer

    async def _send_commands(self) -> None:
        async with self._send_lock:
            while (connection := self._connection) is not None and (frames := self._commands.next_frames()):
                try:
                    await connection.send(*frames)
                except Disconnected:  # the receiving task reconnects
                    return

    async def _receive_forever(self) -> None:
        """Receive frames and reconnect, until an error occurs that a new connection cannot remedy."""
        try:
            while True:
                try:
                    await self._receive()
                except Disconnected as error:
                    await self._reconnect(error)
        except asyncio.CancelledError:
            self._end(self._transport.client_closed())
            self._abort()  # the event loop is ending, which leaves no time for a close frame
            raise
        except Exception as error:
            self._end(error)
            self._abort()

    async def _receive(self) -> None:
        connection = self._connection
        assert connection is not None
        while True:
            frame = parse_frame(await connection.recv())
            self._backoff.reset()
            match frame:
                case None:
                    pass
                case LogItem():
                    if await self._has_space():
                        self._put(self._position.add_item(frame))
                case StateFrame():
                    if await self._has_space():
                        self._put(self._position.add_state(frame.state))
                case _:
                    self._last_error = frame if isinstance(frame, ErrorFrame) else None
                    self._commands.handle(frame)
            if self._discarding and (self._queue.empty() or not self._commands.waiting):
                raise Disconnected("items were discarded")

    def _put(self, items: Iterable[object]) -> None:
        for item in items:
            self._queue.put_nowait(cast("T | State | Gap", item))

    async def _has_space(self) -> bool:
        """Wait for space in the queue of received items. Returns False if the item has to be discarded.

        Discarding begins if the queue stays full for DISCARD_SECONDS while a command waits, until the next connection.
        """
        while self._queue.qsize() >= QUEUE_SIZE and not self._discarding:
            self._wake.clear()
            try:
                async with asyncio.timeout(DISCARD_SECONDS if self._commands.waiting else None):
                    await self._wake.wait()
            except TimeoutError:
                self._discarding = True
        return not self._discarding

    async def _reconnect(self, error: Disconnected) -> None:
        """Replace a lost connection by a new one, after the backoff.

        There is no backoff if this client closed the old connection to fetch discarded items.
        """
        self._raise_if_final(error)
        closed_here, self._discarding = self._discarding, False
        self._abort()
        if error.code == MESSAGE_TOO_BIG:
            self._commands.fail_all(error_from_code("the message is too large for the server", "body_too_large"))
        self._commands.connection_lost()
        cause: Exception = error
        while self._connection is None:
            if not closed_here:
                await self._backoff.wait(cause)
            closed_here = False
            try:
                await self._connect()
            except (Disconnected, ServerError, Limited, ConnectionLost) as failed:
                if isinstance(failed, Disconnected):
                    self._raise_if_final(failed)
                if isinstance(failed, Limited) and not failed.retry_after:
                    raise
                if self._transport.closed:
                    raise self._transport.client_closed() from failed
                cause = failed
        # In a separate task, because the server may not read before this task has received the server's frames.
        self._resending = asyncio.create_task(self._send_commands())

    def _abort(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.abort()

    def _raise_if_final(self, closed: Disconnected) -> None:
        if closed.code in (POLICY_VIOLATION, SESSION_DELETED):
            if self._last_error is not None:
                raise self._last_error.error() from closed
            kind = NotFound if closed.code == SESSION_DELETED else ClientError
            raise kind(f"the server closed the socket: {closed}") from closed

    async def _connect(self) -> None:
        """Open a connection that continues after the last item, and receive the state of the session."""
        if self._first_state is not None:
            await self.state()  # raises if the session was deleted; connecting would create it again
            if self._position.after is None:
                self._position.after = await self._start_of_run(self._first_state)
        after = {} if self._position.after is None else {"after": self._position.after}
        path = url_path("api", "v2", "ws", self.session_id)
        connection = await connect(self._transport, path, {**self._params, **after})
        try:
            await self._resume(await self._receive_state(connection))
        except BaseException:
            connection.abort()
            raise
        self._connection = connection

    async def _receive_state(self, connection: Connection) -> State:
        match frame := parse_frame(await connection.recv()):
            case StateFrame():
                return frame.state
            case ErrorFrame():
                raise frame.error()
            case _:
                raise self._transport.not_limelight("its socket does not begin with the session's state")

    async def _resume(self, state: State) -> None:
        """Handle the state of the session, the first frame of a new connection.

        The end of a run is reported after its missed items.
        """
        is_first, self._first_state = self._first_state is None, self._first_state or state
        if is_first and (state.live or self._position.after is None):
            self._position.set_state(state)
            if not state.live:
                self._position.after = state.cursor
        elif state.live:
            self._put(self._position.add_state(state))
        elif self._position.is_new(state):
            self._put(self._position.defer_state(state, await self._last_cursor(state)))

    async def _last_cursor(self, state: State) -> str:
        """Return the cursor of the last item in the session. For messages, it may be before the end of the log."""
        if self._params.get("format") == "records":
            return state.cursor
        last = await self.last_messages(1)
        return last[-1].cursor if last else "0"

    async def _start_of_run(self, state: State) -> str:
        """Return the cursor before the run that was live on the first connection, if none of its items has arrived."""
        async with aclosing(self._client.follow(state.run_id or "")) as records:
            async for item in records:
                return str((item.first if isinstance(item, Gap) else item.seq) - 1)
        return state.cursor

    def _end(self, error: Exception | None) -> None:
        if self._closed is None:
            self._closed = error or ConnectionLost("the socket is closed")
            self._stop = error or self._stop
            self._queue.put_nowait(None)
        self._commands.fail_all(self._closed)
