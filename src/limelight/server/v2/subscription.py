"""The sending side of a socket: frames of the session, and its state whenever a run begins or ends."""

from limelight.models import LIVE_STATES, Cursor, Run, Session
from limelight.runs.hub import FrameBatch
from limelight.server.schemas import STATE_AFTER_RUN, SessionState
from limelight.server.v2.replies import State
from limelight.server.v2.sender import SocketContext
from limelight.server.v2.sessions import session_info


class Subscription:
    """Sends the frames and state changes of a session to one socket.

    After this context manager is entered, no Record of the session is missed. State changes are sent for runs that
    begin or end while the client is connected, not for replayed runs.
    """

    def __init__(self, context: SocketContext) -> None:
        self._runtime = context.runtime
        self._ref = context.ref
        self._format = context.format
        self._sender = context.sender
        self._counts_messages = context.format.name == "v2"
        """Whether states contain the number of v2 messages, which may take long to count."""
        self._viewer = self._runtime.viewer(self._ref, self._format)
        self._known_seq = 0
        """Number of the last Record that the client's state includes. Runs up to it cause no state changes."""
        self._ended_seq = 0
        """Number of the last Record of the newest run whose end the client knows."""
        self._announced_run: str | None = None
        """The run of the last state that was sent."""
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
        """Make `run` return after it has sent the frames that are available now."""
        self._is_closing = True
        self._viewer.wake()

    def resume(self, cursor: Cursor) -> None:
        """Make `run` continue with the frames after another cursor, because the client has sent `resume`."""
        self._resume_at = cursor
        self._viewer.wake()

    async def send_initial_state(self, session: Session) -> None:
        """Send the current state of the session. `run` sends later changes."""
        self._known_seq, self._announced_run = session.last_seq, session.run_id
        self._ended_seq = await self._last_end(session)
        info = await session_info(self._runtime, session, counted=self._counts_messages)
        await self._sender.send(State(state=info))

    async def _last_end(self, session: Session) -> int:
        """Return the number of the last Record of the session's newest run that has ended."""
        if session.run_state not in LIVE_STATES:
            return session.last_seq
        run = await self._runtime.store.run(session.run_id or "")
        return 0 if run is None else run.first_seq - 1

    async def run(self, cursor: Cursor) -> bool:
        """Send frames and state changes after `cursor`. Return True after `close`, False if the session was deleted."""
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
        """Start the viewer after a cursor. The run to which the cursor belongs becomes the current run.

        This run may end without a further frame, but the state after its end has to be sent.
        """
        self._viewer.start(cursor, only_run=True, min_end=self._ended_seq)
        run = await self._runtime.store.run_covering(self._ref, cursor.seq + 1)
        self._current_run = run if run is not None and run.first_seq <= cursor.seq else None

    async def _restart_viewer(self, cursor: Cursor) -> bool:
        """Replace the viewer by a new one after a cursor. Return False if the session was deleted.

        A viewer does not notice a deletion before it was entered, so this is checked in the store.
        """
        viewer = self._runtime.viewer(self._ref, self._format).__enter__()
        self._viewer.__exit__()
        self._viewer, self._resume_at = viewer, None
        await self._start_viewer(cursor)
        if self._is_closing:
            viewer.wake()
        return await self._runtime.store.session(self._ref) is not None

    async def _send_frames(self, batch: FrameBatch) -> None:
        if self._current_run is None:
            run = self._current_run = await self._runtime.store.run_covering(self._ref, batch.frames[0].cursor.seq)
            if run is not None and run.first_seq > self._known_seq and run.run_id != self._announced_run:
                await self._send_state(run, "processing")
        await self._sender.send_frames(batch)

    async def _end_run(self) -> bool:
        """Send the state of the session after the current run has ended, and let the viewer continue with the next run.

        Return False if the session was deleted.
        """
        run = None if self._current_run is None else await self._runtime.store.run(self._current_run.run_id)
        self._current_run = None
        self._viewer.next_run()
        if run is None or run.last_seq <= self._known_seq:
            return True
        self._known_seq = self._ended_seq = run.last_seq
        return await self._send_state(run, STATE_AFTER_RUN[run.state])

    async def _send_state(self, run: Run, state: SessionState) -> bool:
        """Send the state of the session when a run begins or ends. Return False if the session was deleted."""
        session = await self._runtime.store.session(self._ref)
        if session is None:
            return False
        info = await session_info(self._runtime, session, counted=self._counts_messages)
        info.state, info.run_id = state, run.run_id
        self._announced_run = run.run_id
        await self._sender.send(State(state=info))
        return True
