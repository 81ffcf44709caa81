"""Enforces the time limits of a run: its total time, and the time without an event of its source (silence).

Both limits are paused while an approval is open. Silence is allowed while a tool runs. The engine reports each event of
the source. Each run has one timer, which fires only when a limit may have been reached.
"""

import asyncio
from collections.abc import Callable

from limelight.errors import RunError, RunTimeout, SilenceTimeout


class Watchdog:
    """Calls `on_timeout` when one of the time limits of a run is reached. Silence is allowed while `busy()` is True."""

    def __init__(
        self,
        run_seconds: float,
        silence_seconds: float,
        busy: Callable[[], bool],
        on_timeout: Callable[[RunError], None],
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._run_seconds = run_seconds
        self._silence_seconds = silence_seconds
        self._busy = busy
        self._on_timeout = on_timeout
        self._timer: asyncio.TimerHandle | None = None
        self._paused_at: float | None = None
        self.last_event_at = self._loop.time()
        """Time of the last event of the source, on the clock of the event loop."""
        self._deadline = self.last_event_at + run_seconds

    def check(self) -> None:
        """Check the time limits of the run, and schedule the next check for the earliest time of a timeout."""
        self.stop()
        if self._paused_at is not None:
            return
        now = self._loop.time()
        if self._busy():
            self.last_event_at = now
        if now >= self._deadline:
            self._on_timeout(RunTimeout(f"the run took longer than {self._run_seconds:g} s"))
        elif now >= self.last_event_at + self._silence_seconds:
            self._on_timeout(SilenceTimeout(f"the agent emitted no event for {self._silence_seconds:g} s"))
        else:
            self._timer = self._loop.call_at(
                min(self._deadline, self.last_event_at + self._silence_seconds), self.check
            )

    def pause(self, waiting: bool) -> None:
        """Pause the time limits if an approval is open (`waiting`), else let them run. Called after each event."""
        if waiting and self._paused_at is None:
            self._paused_at = self._loop.time()
            self.stop()
        elif not waiting and self._paused_at is not None:
            self._deadline += self._loop.time() - self._paused_at
            self._paused_at, self.last_event_at = None, self._loop.time()
            self.check()

    def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
