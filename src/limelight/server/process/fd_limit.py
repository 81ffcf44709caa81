"""The limit of open file descriptors: raises it at the start, and logs when no descriptor is left.

Without descriptors no connection can be accepted, and no file can be opened. A monitor checks every second.
"""

import asyncio
import errno
import logging
import os
from collections.abc import Callable
from contextlib import suppress

log = logging.getLogger(__name__)
MAX_DESCRIPTORS = 65_536
"""Highest limit that a server sets. Some systems allow a billion descriptors, and programs that agents start may try to
close every possible one."""
CHECK_SECONDS = 1.0
CONNECTION_SHARE = 0.75
"""Share of the file descriptors that open connections may use. The rest is for files, agents and waiting
connections."""
QUIET_SECONDS = 60.0
"""Minimum time between two log lines of the monitor, because near the limit the state may change often."""


def raise_fd_limit() -> None:
    """Raise the soft limit of this process to its hard limit, but at most to MAX_DESCRIPTORS.

    Does nothing on systems without such a limit.
    """
    try:
        import resource
    except ImportError:  # Windows
        return
    with suppress(OSError, ValueError):  # a system may allow less than its hard limit or forbid the call
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        wanted = MAX_DESCRIPTORS if hard == resource.RLIM_INFINITY else min(hard, MAX_DESCRIPTORS)
        if soft != resource.RLIM_INFINITY and soft < wanted:
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def usable_connections(wanted: int) -> int:
    """Return how many connections this process can have open: `wanted`, or fewer if the descriptor limit is low."""
    try:
        import resource
    except ImportError:  # Windows
        return wanted
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return wanted if soft == resource.RLIM_INFINITY else max(1, min(wanted, int(soft * CONNECTION_SHARE)))


def is_exhausted() -> bool:
    """Whether this process, or the system, has no file descriptor left."""
    try:
        os.close(os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC))
    except OSError as error:
        return error.errno in (errno.EMFILE, errno.ENFILE)
    return False


class FdMonitor:
    """Logs when file descriptors are exhausted, and when they are available again."""

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
                "no file descriptor is left (EMFILE): new connections have to wait, and no further file can be opened. "
                "Raise the limit, with LimitNOFILE= in a systemd unit or `ulimit -n`, and check "
                "what holds so many open"
            )
        else:
            log.warning("file descriptors are available again")
