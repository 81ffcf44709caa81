"""The subscription of a socket: sends the frames of the session, and its state when a run begins and ends."""

from limelight.dialects.base import Cursor
from limelight.models import LIVE_STATES, Run, Session
from limelight.runs.hub import FrameBatch
from limelight.server.schemas import STATE_AFTER_RUN, SessionState
from limelight.server.v2.replies import State
from limelight.server.v2.sender import SocketContext
from limelight.server.v2.sessions import session_info


class Subscription:
    """A context manager. Once entered, it misses nothing. It sends the states of live runs, not of replayed ones."""

    def __init__(self, context: SocketContext) -> None:
        self._runtime = context.runtime
        self._ref = context.ref
        self._format = context.format
        self._sender = context.sender
        self._counts_messages = context.format.name == "v2"
        """Whether states have the number of v2's messages, which may take long to count."""
        self._viewer = self._runtime.viewer(self._ref, self._format)
        self._known_seq = 0
        """Runs up to this Record are history."""
        self._ended_seq = 0
        """The client knows that the runs up to this Record have ended."""
        self._announced_run: str | None = None
        """The run that the client knows to be live."""
        self._current_run: Run | None = None
        """The run whose frames are being sent."""
        self._resume_at: Cursor | None = None
        self._is_closing = False

    def __enter__(self) -> "Subscription":
        self._viewer.__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        self._viewer.__exit__()

    def close(self) -> None:
        """End after the frames that are there."""
        self._is_closing = True
        self._viewer.wake()

    def resume(self, cursor: Cursor) -> None:
        """Continue after another cursor."""
        self._resume_at = cursor
        self._viewer.wake()

    async def send_initial_state(self, session: Session) -> None:
        """Send the state of the session. Changes after it are sent by `run`."""
        self._known_seq, self._announced_run = session.last_seq, session.run_id
        self._ended_seq = await self._last_end(session)
        info = await session_info(self._runtime, session, counted=self._counts_messages)
        await self._sender.send(State(state=info))

    async def _last_end(self, session: Session) -> int:
        """The last Record of the newest run that has ended."""
        if session.run_state not in LIVE_STATES:
            return session.last_seq
        run = await self._runtime.store.run(session.run_id or "")
        return 0 if run is None else run.first_seq - 1

    async def run(self, cursor: Cursor) -> bool:
        """Send frames after `cursor`, until the server closes. False if the session was deleted."""
        await self._start_viewer(cursor)
        while True:
            batch = await self._viewer.next()
            if self._viewer.is_deleted and not batch:
                return False
            if self._resume_at is not None:
                if not await self._restart_viewer(self._resume_at):
                    return False
            elif batch:
                await self._send_frames(batch)
            elif batch is None:
                if not await self._end_run():
                    return False
            elif self._is_closing:
                return True

    async def _start_viewer(self, cursor: Cursor) -> None:
        """Start after the cursor. A run around the cursor may end without a further frame; its end is sent as well."""
        self._viewer.start(cursor, only_run=True, through=self._ended_seq)
        run = await self._runtime.store.run_covering(self._ref, cursor.seq + 1)
        self._current_run = run if run is not None and run.first_seq <= cursor.seq else None

    async def _restart_viewer(self, cursor: Cursor) -> bool:
        """Start a new viewer. False if the session was deleted before it was entered, which it would not notice."""
        viewer = self._runtime.viewer(self._ref, self._format).__enter__()
        self._viewer.__exit__()
        self._viewer, self._resume_at = viewer, None
        await self._start_viewer(cursor)
        if self._is_closing:
            viewer.wake()
        return await self._runtime.store.session(self._ref) is not None

    async def _send_frames(self, batch: FrameBatch) -> None:
        if self._current_run is None:
            seq = Cursor.parse(batch.frames[0].cursor).seq
            run = self._current_run = await self._runtime.store.run_covering(self._ref, seq)
            if run is not None and run.first_seq > self._known_seq and run.run_id != self._announced_run:
                await self._send_state(run, "processing")
        await self._sender.send_frames(batch)

    async def _end_run(self) -> bool:
        """Send the state after the run, and continue with the next run. False if the session was deleted."""
        run = None if self._current_run is None else await self._runtime.store.run(self._current_run.run_id)
        self._current_run = None
        self._viewer.next_run()
        if run is None or run.last_seq <= self._known_seq:
            return True
        self._known_seq = self._ended_seq = run.last_seq
        return await self._send_state(run, STATE_AFTER_RUN[run.state])

    async def _send_state(self, run: Run, state: SessionState) -> bool:
        """Send the state of the session. False if the session was deleted."""
        session = await self._runtime.store.session(self._ref)
        if session is None:
            return False
        info = await session_info(self._runtime, session, counted=self._counts_messages)
        info.state, info.run_id = state, run.run_id
        self._announced_run = run.run_id
        await self._sender.send(State(state=info))
        return True
