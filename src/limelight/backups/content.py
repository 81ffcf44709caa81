"""The content of a backup: which files of a data folder belong to it, and the manifest file that describes it."""

from fnmatch import fnmatch
from pathlib import Path

import msgspec

from limelight.errors import SetupError
from limelight.file_trees import FileRemoved, FileUnreadable, list_folder, translate_errors
from limelight.stores.sqlite.snapshots import is_database

DATABASE = "limelight.db"
"""Name of the store's file in a backup. The original file may have another name."""
MANIFEST = "backup.json"
LAST_BACKUP = "last-backup.json"
RESTORING = ".restoring"
"""Name of the folder inside of a data folder in which a backup is prepared while it is restored."""
VOLUME = "lost+found"
"""Name of a folder that file systems create in an empty volume, `lost+found`. It is ignored."""
EXCLUDED = (
    "*-wal",
    "*-shm",
    "*-journal",
    "*.lock",
    "*.new",
    "*.part",
    "*.bak",
    "run.log",
    MANIFEST,
    LAST_BACKUP,
    RESTORING,
    VOLUME,
)
"""Name patterns of files that are not backed up: SQLite's auxiliary files, locks, unfinished and older copies."""


class Content(msgspec.Struct, frozen=True):
    """The files of a data folder that belong to a backup."""

    data: Path
    databases: dict[str, Path]
    """The databases by their names in the backup, the store's first. Each is copied as a consistent snapshot."""
    files: list[str]
    """All other files, by their path below the data folder, which is also their path in the backup."""
    unread: dict[str, str]
    """Files and folders that cannot be read, with the reason."""


def find_content(data: Path, store: Path) -> Content:
    """Return the content to back up: the store's file, databases of frameworks, keys, and workspaces of sessions."""
    content = Content(data, {DATABASE: store}, [], {})
    for path in sorted(data.iterdir()) if data.is_dir() else ():
        if path == store or path.name == DATABASE or any(fnmatch(path.name, pattern) for pattern in EXCLUDED):
            continue
        try:
            with translate_errors():
                _add(content, path)
        except FileUnreadable as error:
            content.unread[path.name] = str(error)
        except FileRemoved:
            pass
    return content


def _add(content: Content, path: Path) -> None:
    # The suffix also identifies a database whose first bytes are damaged.
    if path.is_file() and (path.suffix == ".db" or is_database(path)):
        content.databases[path.name] = path
    elif path.is_symlink():
        return
    elif path.is_file():
        content.files.append(path.name)
    elif path.is_dir():
        _add_folder(content, path.name)


def _add_folder(content: Content, name: str) -> None:
    """Add all regular files below the folder `name` to the content of a backup. Links are not followed."""
    pending, found = [name], list[str]()
    while pending:
        name = pending.pop()
        try:
            with translate_errors():
                folders, files = list_folder(content.data, name)
        except FileUnreadable as error:
            content.unread[f"{name}/"] = str(error)
        except FileRemoved:
            pass
        else:
            pending += folders
            found += files
    content.files.extend(sorted(found))


class Manifest(msgspec.Struct, frozen=True, kw_only=True):
    """The description of a backup, in the file that is written last: a folder with a manifest is a complete backup."""

    limelight: str
    """The version of Limelight that created the backup."""
    made_at: int
    databases: list[str]
    files: int
    doubtful: dict[str, str] = {}
    """Databases that were damaged or unreadable, with the reason. The backup has a byte-by-byte copy of each."""


class LastBackup(msgspec.Struct, frozen=True):
    """The time and the path of the newest backup of a data folder."""

    at: int
    target: str


def write_manifest(folder: Path, manifest: Manifest) -> None:
    _write(folder / MANIFEST, manifest)


def read_manifest(folder: Path) -> Manifest:
    """Read the manifest of a backup. Raises SetupError if the folder is not a backup."""
    try:
        return msgspec.json.decode((folder / MANIFEST).read_bytes(), type=Manifest)
    except (OSError, msgspec.DecodeError) as error:
        raise SetupError(f"{folder} is not a backup of Limelight: it has no readable {MANIFEST}") from error


def write_last_backup(data: Path, backup: LastBackup) -> None:
    _write(data / LAST_BACKUP, backup)


def read_last_backup(data: Path) -> LastBackup | None:
    """Return the time and the path of a data folder's newest backup; None if no backup is known."""
    try:
        return msgspec.json.decode((data / LAST_BACKUP).read_bytes(), type=LastBackup)
    except (OSError, msgspec.DecodeError):
        return None


def _write(path: Path, value: msgspec.Struct) -> None:
    path.touch(mode=0o600)
    path.write_bytes(msgspec.json.format(msgspec.json.encode(value)) + b"\n")
