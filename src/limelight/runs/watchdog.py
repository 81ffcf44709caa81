"""The time limits of a run: how long it may take in all, and how long its source may be silent.

Neither counts while a person has to decide. Silence does not count while a tool runs. One timer per run, which looks
only when a limit can have been reached; the engine tells it what it heard.
"""

import asyncio
from collections.abc import Callable

from limelight.errors import RunError, RunTimeout, SilenceTimeout


class Watchdog:
    """Calls `bark` once, if a limit is reached. `busy` says whether silence is no bad sign just now."""

    def __init__(
        self, run_seconds: float, silence_seconds: float, busy: Callable[[], bool], bark: Callable[[RunError], None]
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._run_seconds = run_seconds
        self._silence_seconds = silence_seconds
        self._busy = busy
        self._bark = bark
        self._timer: asyncio.TimerHandle | None = None
        self._paused_at: float | None = None
        self.heard = self._loop.time()
        """When the source said something last."""
        self._deadline = self.heard + run_seconds

    def look(self) -> None:
        """Look now, and again at the earliest time at which a limit can be reached."""
        self.stop()
        if self._paused_at is not None:
            return
        now = self._loop.time()
        if self._busy():
            self.heard = now
        if now >= self._deadline:
            self._bark(RunTimeout(f"the run took longer than {self._run_seconds:g} s"))
        elif now >= self.heard + self._silence_seconds:
            self._bark(SilenceTimeout(f"nothing came for {self._silence_seconds:g} s"))
        else:
            self._timer = self._loop.call_at(min(self._deadline, self.heard + self._silence_seconds), self.look)

    def pause(self, waiting: bool) -> None:
        """Told after each event whether a person has to decide: the time that takes is not the run's."""
        if waiting and self._paused_at is None:
            self._paused_at = self._loop.time()
            self.stop()
        elif not waiting and self._paused_at is not None:
            self._deadline += self._loop.time() - self._paused_at
            self._paused_at, self.heard = None, self._loop.time()
            self.look()

    def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
