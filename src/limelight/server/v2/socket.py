"""The WebSocket of a session: who watches it, and talks to its agent.

Two tasks for each socket: one shows, one hears. A socket that leaves stops nothing; one that does not read is fed no
further, and catches up from the store. The server that carries it sends the pings.
"""

import asyncio
import math
from contextlib import suppress

from starlette.websockets import WebSocket, WebSocketState

from limelight.dialects.base import Cursor
from limelight.errors import BadCursor, BadRequest, LimelightError, SessionNotFound
from limelight.runs.viewer import Format
from limelight.server.parts import Parts
from limelight.server.v2.answering import Answering
from limelight.server.v2.line import Gone, Line
from limelight.server.v2.opening import open_session
from limelight.server.v2.replies import State, error_of
from limelight.server.v2.showing import Showing
from limelight.server.v2.state import session_info
from limelight.sources.base import User
from limelight.stores.base import Session, SessionRef

REFUSED = 1008
RESTARTING = 1012
SESSION_GONE = 4404


class SessionSocket:
    """One connection, from its first byte to its last."""

    def __init__(self, websocket: WebSocket, parts: Parts) -> None:
        self._websocket = websocket
        self._parts = parts
        self._user: User = websocket.state.user
        self._ref = SessionRef(self._user.user_id, websocket.path_params["session_id"])
        self._showing: Showing | None = None
        self.last_sent = math.inf  # so that the pulse sends no sign of life: pings of the protocol do

    def beat(self) -> None: ...

    def close(self) -> None:
        if self._showing is not None:
            self._showing.close()

    async def serve(self) -> None:
        line = Line(self._websocket, self._ref.session_id)
        with suppress(Gone):
            await line.open()
            try:
                format_ = self._format()
                session = await self._open()
                start = await self._start(session)
            except LimelightError as error:
                await line.tell(error_of(error))
                await line.close(REFUSED, error.code)
            else:
                await self._converse(session, format_, start, line)

    def _format(self) -> Format:
        wanted = self._websocket.query_params.get("format", "v2")
        if wanted not in ("v2", "records"):
            raise BadRequest(f"format is v2 or records here, not {wanted[:50]!r}", path="format")
        return self._parts.format(wanted)

    async def _open(self) -> Session:
        query = self._websocket.query_params
        steps = query.get("max_steps")
        if steps is not None and not (steps.isascii() and steps.isdecimal() and len(steps) < 10):
            raise BadRequest("max_steps is a whole number", path="max_steps")
        return await open_session(
            self._parts, self._ref, query.get("agent_type"), None if steps is None else int(steps)
        )

    async def _start(self, session: Session) -> Cursor:
        """Behind the cursor that is asked for. Otherwise at the beginning of the live run, or else at the end."""
        after = self._websocket.query_params.get("after")
        if after is not None:
            cursor = Cursor.parse(after)
            if cursor.seq > session.last_seq:
                raise BadCursor(f"the session's log ends at {session.last_seq}: after is from another one")
            return cursor
        run = None if session.run_id is None else await self._parts.store.run(session.run_id)
        return Cursor(run.first_seq - 1 if run is not None and run.live else session.last_seq)

    async def _converse(self, session: Session, format_: Format, start: Cursor, line: Line) -> None:
        with Showing(self._parts, session, format_, line) as showing:
            self._showing = showing
            answering = Answering(self._parts, self._ref, self._user, format_, line, showing.resume)
            await line.tell(State(state=await session_info(self._parts, session)))
            self._parts.pulse.add(self)
            try:
                if self._parts.pulse.closing:
                    showing.close()
                await self._until_one_ends(showing, answering, start, line)
            finally:
                self._parts.pulse.remove(self)

    async def _until_one_ends(self, showing: Showing, answering: Answering, start: Cursor, line: Line) -> None:
        shows = asyncio.create_task(showing.run(start))
        hears = asyncio.create_task(self._hear(answering))
        try:
            await asyncio.wait({shows, hears}, return_when=asyncio.FIRST_COMPLETED)
            if hears.done():
                hears.result()
            elif shows.result():
                await line.close(RESTARTING, "the server is shutting down")
            else:
                await line.tell(error_of(SessionNotFound("Session was deleted")))
                await line.close(SESSION_GONE, "session deleted")
        finally:
            for task in (shows, hears):
                task.cancel()
            await asyncio.gather(shows, hears, return_exceptions=True)

    async def _hear(self, answering: Answering) -> None:
        while self._websocket.client_state is WebSocketState.CONNECTED:
            message = await self._websocket.receive()
            if message["type"] == "websocket.receive":
                await answering.answer(message.get("text"))
