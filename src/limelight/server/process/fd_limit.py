"""Open files, of which each connection is one: as many as the system allows, and a word when there are none left.

uvloop closes a connection for which there is no file, and tells nobody. So somebody looks now and then.
"""

import asyncio
import errno
import logging
import os
from collections.abc import Callable
from contextlib import suppress

log = logging.getLogger(__name__)
ENOUGH = 65_536
"""What a server needs at most. Without a bound, some systems allow a billion, and programs that agents start may go
through all of them to close them."""
LOOK_SECONDS = 1.0
QUIET_SECONDS = 60.0
"""How long nothing is said after a line: files may come and go at the limit."""


def raise_limit() -> None:
    """Let this process have as many as it may have without asking anybody. Harmless where that is unknown."""
    try:
        import resource
    except ImportError:  # not a system with such limits
        return
    with suppress(OSError, ValueError):  # some allow less than they say, a systemd unit may forbid even to ask
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        wanted = ENOUGH if hard == resource.RLIM_INFINITY else min(hard, ENOUGH)
        if soft != resource.RLIM_INFINITY and soft < wanted:
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def none_left() -> bool:
    """Whether this process, or the system, can open no more files."""
    try:
        os.close(os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC))
    except OSError as error:
        return error.errno in (errno.EMFILE, errno.ENFILE)
    return False


class Descriptors:
    """Looks for the end of them, and tells the log when it comes and when it has passed."""

    def __init__(self, looks: Callable[[], bool] = none_left) -> None:
        self._none_left = looks
        self._told = False
        self._quiet_until = 0.0

    async def watch(self) -> None:
        """Until it is cancelled."""
        while True:
            self.look(asyncio.get_running_loop().time())
            await asyncio.sleep(LOOK_SECONDS)

    def look(self, now: float) -> None:
        """Look once, at this time."""
        none = self._none_left()
        if none == self._told or now < self._quiet_until:
            return
        self._told = none
        self._quiet_until = now + QUIET_SECONDS
        if none:
            log.error(
                "no file is left to open, so new connections are closed unanswered and nothing can be read or written "
                "anew. What to do: raise the limit, LimitNOFILE= in a systemd unit or `ulimit -n`, and see what holds "
                "so many open"
            )
        else:
            log.warning("files can be opened again")
