"""Ctrl-C while a run is watched by the one who started it: the server is asked to stop it."""

import asyncio
import signal
import sys

from limelight.client import ClientError, Run

ANSWER_SECONDS = 3
"""How long the answer to Stop may take once the run has ended."""


class Stopping:
    """The first Ctrl-C stops the run, and the view goes on to its end; a second one leaves at once."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self._asking: asyncio.Task[None] | None = None

    async def __aenter__(self) -> None:
        loop = asyncio.get_running_loop()

        def interrupted(*_: object) -> None:
            loop.call_soon_threadsafe(self._stop)

        # Not by the loop's own means, so that an editor can put it aside for a while.
        self._before = signal.signal(signal.SIGINT, interrupted)

    async def __aexit__(self, *_: object) -> None:
        signal.signal(signal.SIGINT, self._before)
        if self._asking is not None:
            await asyncio.wait({self._asking}, timeout=ANSWER_SECONDS)
            self._asking.cancel()

    def _stop(self) -> None:
        if self._asking is not None:
            raise KeyboardInterrupt
        sys.stderr.write("Stopping the run …\n")
        self._asking = asyncio.create_task(self._ask())

    async def _ask(self) -> None:
        try:
            await self._run.cancel("stopped with Ctrl-C")
        except ClientError as error:
            sys.stderr.write(f"The run could not be stopped: {error.detail}\n")
