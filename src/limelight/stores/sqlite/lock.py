"""One server for each data folder: a lock on a file beside the database, held while the server runs.

The system lets go of it when the process ends, however it ends. So a file that a crash has left behind locks nobody
out, and no process id in it can be mistaken for another's. Somebody may take the file for a leftover and delete it;
its holder then takes the lock anew, or learns that another server was faster.
"""

import fcntl
import os
from pathlib import Path
from typing import IO

from limelight.errors import StoreLocked


class FolderLock:
    """The lock for one database."""

    def __init__(self, database: Path) -> None:
        self._database = database
        self._path = database.with_name(database.name + ".lock")
        self._file: IO[str] | None = None
        self._has_numbers = True
        """Whether the file system tells files apart by number, as most do."""

    def take(self) -> None:
        """Raises StoreLocked if another server has it, OSError if there can be no such file."""
        while self._file is None:
            file = self._path.open("w")
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                file.close()
                raise StoreLocked(
                    f"another server uses {self._database}: end it, or choose another folder with --data"
                ) from None
            if os.fstat(file.fileno()).st_nlink:
                self._file = file
            else:  # it was deleted between the two steps: whoever comes next would not see this lock
                file.close()
        self._has_numbers = self._is_in_place(self._file)

    def still_held(self) -> bool:
        """Whether no other server can come. Takes the lock anew if its file is gone."""
        if self._file is not None and (not self._has_numbers or self._is_in_place(self._file)):
            return True
        before, self._file = self._file, None
        try:
            self.take()
        except (StoreLocked, OSError):
            self._file = before  # not ours any more, but to be closed one day
            return False
        if before is not None:
            before.close()
        return True

    def _is_in_place(self, file: IO[str]) -> bool:
        try:
            return os.path.samestat(os.fstat(file.fileno()), self._path.stat())
        except OSError:
            return False

    def is_taken(self) -> bool:
        """Whether some server has it, for somebody who does not want it."""
        try:
            with self._path.open() as file:
                fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except FileNotFoundError:
            return False
        except BlockingIOError:
            return True
        return False

    def release(self) -> None:
        """Let another server have it."""
        if self._file is not None:
            self._file.close()
            self._file = None
