"""The WebSocket of a session: who watches it, and talks to its agent.

Two tasks for each socket: one shows, one hears. A socket that leaves stops nothing; one that does not read is fed no
further, and catches up from the store. The server that carries it sends the pings.
"""

import asyncio
import math
from collections.abc import Coroutine
from contextlib import suppress
from typing import Any

from starlette.websockets import WebSocket, WebSocketState

from limelight.dialects.base import Cursor
from limelight.errors import (
    BadRequest,
    InvalidBody,
    LimelightError,
    RequestError,
    SessionNotFound,
    TooManyRequests,
    Unauthorized,
)
from limelight.models import LIVE_STATES, Session, SessionRef
from limelight.runs.limits import RETRY_AFTER_SECONDS, TokenBucket
from limelight.runs.viewer import Format
from limelight.server.auth.authenticator import Caller
from limelight.server.heartbeat import Kind
from limelight.server.middleware.root_path import root_of
from limelight.server.runtime import Parts
from limelight.server.v2.command_handler import Answering
from limelight.server.v2.framing import PACKED, packed_records, socket_framing
from limelight.server.v2.open_session import STEPS, check_after, open_session
from limelight.server.v2.sender import Gone, Line
from limelight.server.v2.subscription import Showing

REFUSED = 1008
BROKEN = 1011
RESTARTING = 1012
AGAIN_LATER = 1013
SESSION_GONE = 4404
MESSAGES = 200
MESSAGES_PER_SECOND = 50
TOO_MANY = f"a socket takes {MESSAGES} messages at once and {MESSAGES_PER_SECOND} per second: send fewer"
"""Every message counts, also pings and those that are not understood."""
LOST = "the key that opened this socket does not hold any more"


class SessionSocket:
    """One connection, from its first byte to its last."""

    kind: Kind = "socket"

    def __init__(self, websocket: WebSocket, parts: Parts) -> None:
        self._websocket = websocket
        self._parts = parts
        caller: Caller = websocket.state.caller
        self._user = caller.user
        self._ref = SessionRef(self._user.user_id, websocket.path_params["session_id"])
        self._showing: Showing | None = None
        self.format = ""
        self.still_holds = websocket.state.still_holds
        self._expelled: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._messages = TokenBucket(MESSAGES, MESSAGES_PER_SECOND, asyncio.get_running_loop().time)
        self.last_sent = math.inf  # so that the pulse sends no sign of life: pings of the protocol do

    def beat(self) -> None: ...

    def expel(self) -> None:
        if not self._expelled.done():
            self._expelled.set_result(None)

    def close(self) -> None:
        if self._showing is not None:
            self._showing.close()

    async def serve(self) -> None:
        line = Line(self._websocket, self._ref.session_id, self._parts.metrics.refused)
        with suppress(Gone):
            await line.open()
            try:
                format_, after = self._format(), self._after()
                if format_.name == PACKED:
                    line.framing = socket_framing(self._ref.session_id, packed=True)
                with self._parts.stream_place(self._ref.owner):
                    await self._open(after)
                # Nothing is awaited from here until the viewer has entered, which takes the place.
                await self._converse(format_, after, line)
            except Gone:
                raise
            except Exception as error:
                await self._turn_away(error, line)

    def _format(self) -> Format:
        wanted = self._websocket.query_params.get("format", "v2")
        if wanted not in ("v2", "records"):
            raise BadRequest(f"format is v2 or records here, not {wanted[:50]!r}", path="format")
        root = root_of(self._websocket.scope)
        return packed_records(root) if self._is_packed(wanted) else self._parts.format(wanted, root)

    def _is_packed(self, format_: str) -> bool:
        wanted = self._websocket.query_params.get("packed", "0")
        if wanted not in ("0", "1"):
            raise BadRequest(f"packed is 1 or 0, not {wanted[:50]!r}", path="packed")
        if wanted == "1" and format_ != "records":
            raise BadRequest("packed=1 needs format=records: other formats are not packed", path="packed")
        return wanted == "1"

    def _after(self) -> Cursor | None:
        after = self._websocket.query_params.get("after")
        return None if after is None else Cursor.parse(after)

    async def _open(self, after: Cursor | None) -> None:
        """Make the session if it is new, and if all that is asked for can be had."""
        query = self._websocket.query_params
        steps = query.get("max_steps")
        if steps is not None and not (steps.isascii() and steps.isdecimal() and len(steps) < 10):
            raise InvalidBody(STEPS, path="max_steps")
        known = await self._parts.store.session(self._ref)
        if after is not None:
            check_after(after, 0 if known is None else known.last_seq)
        agent_type = query.get("agent_type") or None  # a form that is left empty says nothing
        await open_session(self._parts, self._ref, agent_type, None if steps is None else int(steps))

    async def _converse(self, format_: Format, after: Cursor | None, line: Line) -> None:
        with Showing(self._parts, self._ref, format_, line) as showing:
            # Read only now: what happens from here on the viewer is told, that the session is deleted too.
            session = await self._parts.store.session(self._ref)
            if session is None:
                await self._say_gone(line)
                return
            start = after or await self._start(session)
            answering = Answering(self._parts, self._ref, self._user, format_, line, showing.resume)
            self._showing, self.format = showing, format_.name
            self._parts.pulse.add(self)
            try:
                if self._parts.pulse.closing:
                    showing.close()
                await showing.greet(session)
                await self._until_one_ends(showing.run(start), answering, line)
            finally:
                self._parts.pulse.remove(self)

    async def _start(self, session: Session) -> Cursor:
        """The beginning of the live run, even if it has ended just now; or else the end."""
        run = None if session.run_id is None else await self._parts.store.run(session.run_id)
        is_live = session.run_state in LIVE_STATES
        return Cursor(run.first_seq - 1 if run is not None and is_live else session.last_seq)

    async def _until_one_ends(self, showing: Coroutine[Any, Any, bool], answering: Answering, line: Line) -> None:
        shows = asyncio.create_task(showing)
        hears = asyncio.create_task(self._hear(answering))
        try:
            ends: set[asyncio.Future[Any]] = {shows, hears, self._expelled}
            await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
            if self._expelled.done():
                shows.cancel()  # not one frame more, and it may hold the line
                await self._turn_away(Unauthorized(LOST), line)
            elif hears.done():
                await self._heard(hears, line)
            else:
                await self._farewell(shows, line)
        finally:
            for task in (shows, hears):
                task.cancel()
            await asyncio.gather(shows, hears, return_exceptions=True)

    async def _heard(self, hears: "asyncio.Task[None]", line: Line) -> None:
        try:
            hears.result()
        except (Unauthorized, TooManyRequests) as error:
            await self._turn_away(error, line)

    async def _farewell(self, shows: "asyncio.Task[bool]", line: Line) -> None:
        try:
            is_there = shows.result()
        except Gone:
            raise
        except Exception as error:
            await self._turn_away(error, line)
        else:
            if is_there:
                await line.close(RESTARTING, "the server is shutting down")
            else:
                await self._say_gone(line)

    async def _turn_away(self, error: Exception, line: Line) -> None:
        """Say why it cannot go on. The code says whether it is worth coming back."""
        told = await line.refuse(error)
        await line.close(closing_code(error), told.error_code)

    async def _say_gone(self, line: Line) -> None:
        await line.refuse(SessionNotFound("Session was deleted"))
        await line.close(SESSION_GONE, "session deleted")

    async def _hear(self, answering: Answering) -> None:
        while self._websocket.client_state is WebSocketState.CONNECTED:
            message = await self._websocket.receive()
            if message["type"] == "websocket.receive":
                if not self._messages.spend():
                    raise TooManyRequests(TOO_MANY, retry_after=RETRY_AFTER_SECONDS)
                if not await self.still_holds():
                    raise Unauthorized(LOST)
                await answering.answer(message.get("text"))
                await asyncio.sleep(0)  # messages that have arrived together do not keep the loop from others


def closing_code(error: Exception) -> int:
    """With which a socket is closed: by what time mends, by what the client can mend, by what is broken here."""
    if isinstance(error, LimelightError) and error.retry_after:
        return AGAIN_LATER
    return REFUSED if isinstance(error, RequestError) else BROKEN
