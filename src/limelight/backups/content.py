"""What of a data folder belongs into a backup: everything, but for what only a running server needs."""

from collections.abc import Iterator
from fnmatch import fnmatch
from pathlib import Path

import msgspec

from limelight.databases import is_database

DATABASE = "limelight.db"
"""What the store's file is called in a backup, whatever it is called outside."""
MANIFEST = "backup.json"
NOTE = "last-backup.json"
LEFT_OUT = (
    "*-wal",
    "*-shm",
    "*-journal",
    "*.lock",
    "*.new",
    "*.part",
    "*.bak",
    "*.rescued*",
    "run.log",
    MANIFEST,
    NOTE,
)
"""SQLite's own, locks, drafts and older copies. Of what SQLite keeps beside a database, the copy has all."""


class Content(msgspec.Struct, frozen=True):
    """By name inside the backup."""

    databases: dict[str, Path]
    """Copied as they are at one moment."""
    files: dict[str, Path]


def content_of(data: Path, store: Path) -> Content:
    """The store's file, the databases of frameworks in the folder, keys, and the workspaces of sessions."""
    databases, files = {DATABASE: store}, dict[str, Path]()
    for path in sorted(data.iterdir()) if data.is_dir() else ():
        if path == store or path.name == DATABASE or any(fnmatch(path.name, pattern) for pattern in LEFT_OUT):
            continue
        if path.is_file() and is_database(path):
            databases[path.name] = path
        else:
            files |= {str(found.relative_to(data)): found for found in _files_at(path)}
    return Content(databases, files)


def _files_at(path: Path) -> Iterator[Path]:
    """The file, or all files of the folder. Links are not followed, and what is no file is left out."""
    if path.is_symlink():
        return
    if path.is_dir():
        for inner in sorted(path.iterdir()):
            yield from _files_at(inner)
    elif path.is_file():
        yield path
