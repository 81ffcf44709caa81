"""What of a data folder belongs into a backup: everything, but for what only a running server needs."""

from fnmatch import fnmatch
from pathlib import Path

import msgspec

from limelight.file_trees import Gone, Unreadable, entries_of, looking
from limelight.stores.sqlite.snapshots import is_database

DATABASE = "limelight.db"
"""What the store's file is called in a backup, whatever it is called outside."""
MANIFEST = "backup.json"
NOTE = "last-backup.json"
RESTORING = ".restoring"
"""Where a backup is put together that is restored into a folder which is there."""
VOLUME = "lost+found"
"""The file system's own, in an empty volume too."""
LEFT_OUT = (
    "*-wal",
    "*-shm",
    "*-journal",
    "*.lock",
    "*.new",
    "*.part",
    "*.bak",
    "run.log",
    MANIFEST,
    NOTE,
    RESTORING,
    VOLUME,
)
"""SQLite's own, locks, drafts and older copies. Of what SQLite keeps beside a database, the copy has all."""


class Content(msgspec.Struct, frozen=True):
    """What was found."""

    data: Path
    databases: dict[str, Path]
    """By name inside the backup, the store's first. Each is copied as it is at one moment."""
    files: list[str]
    """By path below the data folder, and so inside the backup."""
    unread: dict[str, str]
    """What cannot be read, and why."""


def content_of(data: Path, store: Path) -> Content:
    """The store's file, the databases of frameworks in the folder, keys, and the workspaces of sessions."""
    content = Content(data, {DATABASE: store}, [], {})
    for path in sorted(data.iterdir()) if data.is_dir() else ():
        if path == store or path.name == DATABASE or any(fnmatch(path.name, pattern) for pattern in LEFT_OUT):
            continue
        try:
            with looking():
                _add(content, path)
        except Unreadable as why:
            content.unread[path.name] = str(why)
        except Gone:
            pass
    return content


def _add(content: Content, path: Path) -> None:
    # A database whose first bytes are damaged is known by its name only.
    if path.is_file() and (path.suffix == ".db" or is_database(path)):
        content.databases[path.name] = path
    elif path.is_symlink():
        return
    elif path.is_file():
        content.files.append(path.name)
    elif path.is_dir():
        _add_folder(content, path.name)


def _add_folder(content: Content, name: str) -> None:
    """All files of the folder. Links are not followed, and what is neither file nor folder is left out."""
    waiting, found = [name], list[str]()
    while waiting:
        name = waiting.pop()
        try:
            with looking():
                folders, files = entries_of(content.data, name)
        except Unreadable as why:
            content.unread[f"{name}/"] = str(why)
        except Gone:
            pass
        else:
            waiting += folders
            found += files
    content.files.extend(sorted(found))
