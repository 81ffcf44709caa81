"""The end of the process, by a time that is set, whatever hangs: a tool in a thread, a framework's database, a loop."""

import logging
import os
import sys
import threading
import traceback
from collections.abc import Iterator

from limelight.stores.base import EXIT_LOCK

log = logging.getLogger(__name__)
NAMED = 5
"""So many threads are named of those that have kept the process."""


STATUS = 1
"""Other than that of an orderly end, which is the signal's."""


def end_process_after(seconds: float) -> None:
    """End this process then, if it is still there, and say what has kept it."""
    timer = threading.Timer(seconds, _end)
    timer.daemon = True  # a process that has ended before does not wait for it
    timer.start()


def _end() -> None:
    try:
        log.error("the server does not come to its end, so it is ended; still at work: %s", "; ".join(_at_work()))
    finally:
        with EXIT_LOCK:
            os._exit(STATUS)  # neither threads nor exit handlers are waited for


def _at_work() -> Iterator[str]:
    """The threads that a process waits for, and where each is."""
    frames = sys._current_frames()  # pyright: ignore[reportPrivateUsage]
    threads = [thread for thread in threading.enumerate() if thread.ident in frames and not thread.daemon]
    for thread in threads[:NAMED]:
        place = traceback.extract_stack(frames[thread.ident or 0], limit=1)[-1]
        yield f"{thread.name} in {place.name} ({place.filename}:{place.lineno})"
    if len(threads) > NAMED:
        yield f"and {len(threads) - NAMED} more"
