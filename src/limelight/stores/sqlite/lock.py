"""One server for each data folder: a lock on a file beside the database, held while the server runs.

The system lets go of it when the process ends, however it ends. So a file that a crash has left behind locks nobody
out, and no process id in it can be mistaken for another's. Somebody may take the file for a leftover and delete it;
its holder then takes the lock anew, or learns that another server was faster.

In the file stands which database its holder has open, by what the system calls it: whoever looks at the folder from
outside has to know, because to open another database beside that one's `-wal` would mix the two.
"""

import fcntl
import os
import threading
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

from limelight.errors import StoreLocked

TRIES = 10
TRY_SECONDS = 0.05
"""Somebody who only looks whether it is taken has it for a moment."""


class FolderLock:
    """The lock for one database."""

    def __init__(self, database: Path) -> None:
        self._database = database
        self._path = database.with_name(database.name + ".lock")
        self._file: BinaryIO | None = None
        self._has_numbers = True
        """Whether the file system tells files apart by number, as most do."""
        self._opened = ""
        """The database that is open, as it is noted in the file."""
        self._is_noted = True

    def take(self) -> None:
        """Raises StoreLocked if another server has it, OSError if there can be no such file, or no word in it."""
        self._acquire()
        self._write()

    def _acquire(self) -> None:
        while self._file is None:
            # Unbuffered: what a full disk does not take must not be tried once more when the file is closed.
            file: BinaryIO = self._path.open("ab", buffering=0)
            try:
                self._lock(file)
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

    def _lock(self, file: BinaryIO) -> None:
        for tries in range(TRIES):
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                if tries == TRIES - 1:
                    raise
                threading.Event().wait(TRY_SECONDS)
            else:
                return

    def note(self, opened: os.stat_result) -> None:
        """This is the database that is open. Raises OSError if that cannot be written down."""
        self._opened = _named(opened)
        self._write()

    def _write(self) -> None:
        if self._file is not None:
            self._is_noted = False
            self._file.truncate(0)
            self._file.write(self._opened.encode())
            self._is_noted = True

    def is_of(self, found: os.stat_result) -> bool:
        """Whether this is the database that the holder has open, as far as the file says."""
        noted = self._path.read_text()
        return not noted or noted == _named(found)

    def still_held(self) -> bool:
        """Whether no other server can come. Takes the lock anew if its file is gone; raises OSError if there can be no
        such file now, which says nothing of another server."""
        if self._file is None or (self._has_numbers and not self._is_in_place(self._file)):
            before, self._file = self._file, None
            try:
                self._acquire()
            except (StoreLocked, OSError) as error:
                self._file = before  # not ours any more, but to be closed one day
                if isinstance(error, OSError):
                    raise
                return False
            if before is not None:
                before.close()
            self._is_noted = False
        if not self._is_noted:
            with suppress(OSError):  # the lock is ours all the same; whoever looks finds no note, and goes by the lock
                self._write()
        return True

    def _is_in_place(self, file: BinaryIO) -> bool:
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


def _named(found: os.stat_result) -> str:
    return f"{found.st_dev} {found.st_ino}"
