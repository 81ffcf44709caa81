"""Operations that tests of backups share: fill and damage databases, back up, look at folders."""

import os
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from limelight.backups.create import CreatedBackup, create_backup
from limelight.errors import SetupError


def fill(path: Path, mode: str) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.execute(f"PRAGMA journal_mode = {mode}")
        db.execute("CREATE TABLE rows (n INTEGER, body BLOB)")
        db.executemany("INSERT INTO rows VALUES (?, ?)", [(n, os.urandom(500)) for n in range(100)])


def nothing(*_: object) -> None:
    """A callback that does nothing."""


def count(path: Path) -> int:
    with closing(sqlite3.connect(path)) as db:
        return db.execute("SELECT count(*) FROM rows").fetchone()[0]


def back_up(data: Path, target: Path) -> CreatedBackup:
    return create_backup(data, data / "limelight.db", target, at=1000, version="1.2", progress=nothing)


def names_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def modes(folder: Path) -> set[int]:
    return {path.stat().st_mode & 0o077 for path in (folder, *folder.rglob("*"))}


def refused(work: Callable[[], object], folder: Path) -> str:
    """Assert that a call raises SetupError and changes nothing. Return the detail."""
    before = names_in(folder)
    with pytest.raises(SetupError) as error:
        work()
    assert names_in(folder) == before
    return error.value.detail


def damage(path: Path) -> None:
    """Overwrite the middle of a database, where its rows are."""
    size = path.stat().st_size
    with path.open("r+b") as file:
        file.seek(size // 2 // 4096 * 4096)
        file.write(b"\xff" * 8192)
