"""Whether the files of an open database are still where they were.

An open file that is moved or deleted can be written on, and whatever is written then is lost with the process, or is
where nobody looks for it. SQLite does not notice that in its WAL mode. So the writer asks here before each commit; it
costs a few microseconds.
"""

import os
from pathlib import Path

from limelight.stores.sqlite.faults import DELETED, GONE, LOG_GONE, REPLACED, Trouble


class Whereabouts:
    """Knows which files were opened, by what the system calls them."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._log = path.with_name(path.name + "-wal")
        # Held open as long as there are connections: to close it earlier would release the locks that SQLite has.
        self._descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        self._log_found = _found(self._log)
        # A file system that does not tell files apart by number would make every file look like another one.
        found = _found(path)
        self._has_numbers = found is not None and os.path.samestat(found, os.fstat(self._descriptor))

    @property
    def opened(self) -> os.stat_result:
        """What the system knows of the database that is open."""
        return os.fstat(self._descriptor)

    def is_deleted(self) -> bool:
        """Whether no name leads to the database any more: what is in it ends with this process."""
        return self.opened.st_nlink == 0

    def trouble(self) -> Trouble | None:
        here, opened = _found(self._path), self.opened
        if here is None:
            return DELETED if self.is_deleted() else GONE
        if not self._has_numbers:
            return None
        if not os.path.samestat(here, opened):
            return REPLACED
        log = _found(self._log)
        if self._log_found is not None and (log is None or not os.path.samestat(log, self._log_found)):
            return LOG_GONE
        return None

    def close(self) -> None:
        """Once all connections are closed."""
        os.close(self._descriptor)


def _found(path: Path) -> os.stat_result | None:
    try:
        return path.stat()
    except OSError:
        return None
