"""Access to the files of a SQLite store from outside: through another connection, or as bytes on disk."""

import errno
import io
import os
import shutil
import sqlite3
from collections.abc import Generator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any


def query(path: Path, sql: str, *values: Any) -> Any:
    """Run a statement on a new connection and commit. Return the first column of the first row."""
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        row = db.execute(sql, values).fetchone()
        return None if row is None else row[0]


@contextmanager
def locked(path: Path, kind: str = "IMMEDIATE") -> Generator[None]:
    """Hold the write lock of the database, as another program would."""
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.execute(f"BEGIN {kind}")
        yield
        db.execute("ROLLBACK")


def copy_live_files(path: Path, folder: Path) -> Path:
    """Copy the files as a crash at this moment would leave them. Return the path of the database."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    for name in (path.name, path.name + "-wal", path.name + "-shm"):
        if (path.parent / name).exists():
            shutil.copy(path.parent / name, folder / name)
    return folder / path.name


def damage_last_page(path: Path) -> None:
    """Overwrite the last page of a database that no process has open, as a disk error would do it."""
    size = query(path, "PRAGMA page_size")
    with path.open("r+b") as file:
        file.seek(-size, os.SEEK_END)
        file.write(b"\xff" * size)


def transactions(path: Path) -> int:
    """Count the commits in the write-ahead log: the last frame of each has the size of the database."""
    data = path.with_name(path.name + "-wal").read_bytes()
    size = int.from_bytes(data[8:12]) + 24
    return sum(data[at + 4 : at + 8] != b"\0\0\0\0" for at in range(32, len(data) - size + 1, size))


class FullFile(io.FileIO):
    """A lock file on a full disk: it can be created, but not written."""

    _open = Path.open

    def write(self, _: object) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    @staticmethod
    def open(path: Path, mode: str = "r", *args: Any, **options: Any) -> Any:
        """Replaces `Path.open`."""
        is_lock = path.suffix == ".lock" and mode == "ab"
        return FullFile(path, "a") if is_lock else FullFile._open(path, mode, *args, **options)


def content(path: Path) -> bytes:
    """Return the bytes of a file; none if it does not exist."""
    return path.read_bytes() if path.exists() else b""


def overwrite(path: Path, data: bytes) -> None:
    path.write_bytes(data)


def move(path: Path, target: Path) -> Path:
    """Move a file as `mv` does, over an existing one."""
    return path.replace(target)


def remove(*paths: Path) -> None:
    """Delete files and whole folders."""
    for path in paths:
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink()
