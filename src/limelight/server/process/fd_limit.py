"""The limit of open file descriptors: it is raised at the start, and a log line says when none are left.

uvloop closes a connection for which there is no descriptor without any message, so a monitor checks every second.
"""

import asyncio
import errno
import logging
import os
from collections.abc import Callable
from contextlib import suppress

log = logging.getLogger(__name__)
MAX_DESCRIPTORS = 65_536
"""Descriptors that a server asks for at most. Some systems allow a billion, and programs that agents start may try to
close each of them."""
CHECK_SECONDS = 1.0
QUIET_SECONDS = 60.0
"""Time without further log lines after one: at the limit the state may change often."""


def raise_fd_limit() -> None:
    """Raise the soft limit of this process as far as its hard limit allows. Does nothing where there is none."""
    try:
        import resource
    except ImportError:  # Windows
        return
    with suppress(OSError, ValueError):  # some systems allow less than they say, and a systemd unit may forbid the call
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        wanted = MAX_DESCRIPTORS if hard == resource.RLIM_INFINITY else min(hard, MAX_DESCRIPTORS)
        if soft != resource.RLIM_INFINITY and soft < wanted:
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def is_exhausted() -> bool:
    """Whether this process, or the system, has no file descriptor left."""
    try:
        os.close(os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC))
    except OSError as error:
        return error.errno in (errno.EMFILE, errno.ENFILE)
    return False


class FdMonitor:
    """Logs when the file descriptors are exhausted, and when there are some again."""

    def __init__(self, is_exhausted: Callable[[], bool] = is_exhausted) -> None:
        self._is_exhausted = is_exhausted
        self._was_exhausted = False
        self._quiet_until = 0.0

    async def run(self) -> None:
        """Check every second until the task is cancelled."""
        while True:
            self.check(asyncio.get_running_loop().time())
            await asyncio.sleep(CHECK_SECONDS)

    def check(self, now: float) -> None:
        is_exhausted = self._is_exhausted()
        if is_exhausted == self._was_exhausted or now < self._quiet_until:
            return
        self._was_exhausted = is_exhausted
        self._quiet_until = now + QUIET_SECONDS
        if is_exhausted:
            log.error(
                "no file descriptor is left (EMFILE): new connections are closed without an answer, and no further "
                "file can be opened. Raise the limit, with LimitNOFILE= in a systemd unit or `ulimit -n`, and check "
                "what holds so many open"
            )
        else:
            log.warning("file descriptors are available again")
