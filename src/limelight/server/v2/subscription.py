"""The half of a socket that shows: the session's log as it grows, and the session's state at the edges of runs."""

from limelight.dialects.base import Cursor
from limelight.models import LIVE_STATES, Run, Session, SessionRef
from limelight.runs.hub import FrameBatch
from limelight.runs.viewer import Format
from limelight.server.runtime import Parts
from limelight.server.v2.replies import State
from limelight.server.v2.sender import Line
from limelight.server.v2.session_info import session_info
from limelight.server.views import AFTER_RUN, SessionState


class Showing:
    """Use as `with`: it watches from then on. States are told of what happens now, not of what is replayed."""

    def __init__(self, parts: Parts, ref: SessionRef, format_: Format, line: Line) -> None:
        self._parts = parts
        self._ref = ref
        self._format = format_
        self._line = line
        self._counted = format_.name == "v2"
        """Whoever reads Records does not count v2's messages, and needs not wait until they are counted."""
        self._viewer = parts.viewer(ref, format_)
        self._known = 0
        """Runs up to here are history."""
        self._ended = 0
        """Runs that end up to here have ended, and the client was told."""
        self._announced: str | None = None
        """The run that the client knows to be going on."""
        self._run: Run | None = None
        """The run that is being shown."""
        self._resume_at: Cursor | None = None
        self._over = False

    def __enter__(self) -> "Showing":
        self._viewer.__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        self._viewer.__exit__()

    def close(self) -> None:
        """Show what there is, and end."""
        self._over = True
        self._viewer.wake()

    def resume(self, cursor: Cursor) -> None:
        """Go on behind another cursor."""
        self._resume_at = cursor
        self._viewer.wake()

    async def greet(self, session: Session) -> None:
        """Tell what the session is now; what comes later is news."""
        self._known, self._announced = session.last_seq, session.run_id
        self._ended = await self._last_end(session)
        await self._line.tell(State(state=await session_info(self._parts, session, counted=self._counted)))

    async def _last_end(self, session: Session) -> int:
        """Where the last run ended that does not go on."""
        if session.run_state not in LIVE_STATES:
            return session.last_seq
        run = await self._parts.store.run(session.run_id or "")
        return 0 if run is None else run.first_seq - 1

    async def run(self, cursor: Cursor) -> bool:
        """Show what is behind `cursor`, until the server closes. False if the session is gone."""
        await self._sit_down(cursor)
        while True:
            batch = await self._viewer.next()
            if self._viewer.is_deleted and not batch:
                return False
            if self._resume_at is not None:
                if not await self._sit_elsewhere(self._resume_at):
                    return False
            elif batch:
                await self._show(batch)
            elif batch is None:
                if not await self._end_run():
                    return False
            elif self._over:
                return True

    async def _sit_down(self, cursor: Cursor) -> None:
        """A run that we are in the middle of may end without a message: then its end is still to be told."""
        self._viewer.start(cursor, only_run=True, through=self._ended)
        run = await self._parts.store.run_covering(self._ref, cursor.seq + 1)
        self._run = run if run is not None and run.first_seq <= cursor.seq else None

    async def _sit_elsewhere(self, cursor: Cursor) -> bool:
        """False if the session was deleted before we sat down again, which nobody will tell us any more."""
        viewer = self._parts.viewer(self._ref, self._format).__enter__()
        self._viewer.__exit__()
        self._viewer, self._resume_at = viewer, None
        await self._sit_down(cursor)
        if self._over:
            viewer.wake()
        return await self._parts.store.session(self._ref) is not None

    async def _show(self, batch: FrameBatch) -> None:
        if self._run is None:
            seq = Cursor.parse(batch.frames[0].cursor).seq
            self._run = await self._parts.store.run_covering(self._ref, seq)
            if self._run is not None and self._run.first_seq > self._known and self._run.run_id != self._announced:
                await self._tell(self._run, "processing")
        await self._line.show(batch)

    async def _end_run(self) -> bool:
        """Tell how it ended, and wait for the next. False if the session is gone."""
        run = None if self._run is None else await self._parts.store.run(self._run.run_id)
        self._run = None
        self._viewer.next_run()
        if run is None or run.last_seq <= self._known:
            return True
        self._known = self._ended = run.last_seq
        return await self._tell(run, AFTER_RUN[run.state])

    async def _tell(self, run: Run, state: SessionState) -> bool:
        session = await self._parts.store.session(self._ref)
        if session is None:
            return False
        info = await session_info(self._parts, session, counted=self._counted)
        info.state, info.run_id = state, run.run_id
        self._announced = run.run_id
        await self._line.tell(State(state=info))
        return True
