"""Creates a backup of a data folder: a folder, or a .tar.gz of it.

The backup is prepared and checked in a draft folder beside the target, and renamed at the end, so an incomplete backup
never has the name of the target. A running server is not interrupted.
"""

import os
import sqlite3
import tarfile
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import mkdtemp

import msgspec

from limelight.backups.content import (
    Content,
    LastBackup,
    Manifest,
    find_content,
    write_last_backup,
    write_manifest,
)
from limelight.backups.file_copy import Progress, copy_database_bytes, copy_databases, copy_file
from limelight.errors import SetupError
from limelight.file_trees import FileRemoved, FileUnreadable, remove_tree, walk

ARCHIVE_SUFFIXES = (".tar.gz", ".tgz")


class CreatedBackup(Manifest, frozen=True, kw_only=True):
    """The result of `create_backup`: the manifest and the size of the backup, and the files that are missing in it."""

    size: int
    unread: dict[str, str]
    """Files that are not in the backup because they cannot be read, with the reason."""


def is_archive(path: Path) -> bool:
    return path.name.endswith(ARCHIVE_SUFFIXES)


def create_backup(data: Path, store: Path, target: Path, *, at: int, version: str, progress: Progress) -> CreatedBackup:
    """Back up a data folder and the store's file, which may be outside of it. Raises SetupError."""
    if target.exists() or target.is_symlink():
        raise SetupError(f"{target} is there already: a backup is never overwritten, choose another name")
    if not store.is_file():
        raise SetupError(f"there is nothing to back up: no {store}")
    if target.resolve().is_relative_to(data.resolve()):  # resolved, because the target may be a link
        raise SetupError(f"{target} is inside the data folder: a backup belongs somewhere else")
    try:
        target.absolute().parent.mkdir(parents=True, exist_ok=True)
        draft = Path(mkdtemp(prefix=f".{target.name}.", dir=target.absolute().parent))  # private
    except OSError as error:
        raise SetupError(f"{target} cannot be made ({error.strerror}): choose another place") from error
    try:
        created = _fill(draft / "backup", find_content(data, store), at, version, progress)
        _publish(draft, target, progress)
    except (OSError, sqlite3.Error, tarfile.TarError) as error:
        raise SetupError(f"the backup cannot be made: {error}; no part of it is left") from error
    finally:
        remove_tree(draft)
    with suppress(OSError):  # the data folder may be read-only; the backup is still useful
        write_last_backup(data, LastBackup(at, str(target.absolute())))
    return created


def _fill(folder: Path, content: Content, at: int, version: str, progress: Progress) -> CreatedBackup:
    folder.mkdir(mode=0o700)
    doubtful = copy_databases(content.databases, folder, progress)
    unread, missing = dict(content.unread), set[str]()
    for name in doubtful:
        with _skip_unreadable(name, unread, missing):
            copy_database_bytes(content.databases[name], folder / name)
    for done, name in enumerate(content.files):
        progress("files", done, len(content.files))
        with _skip_unreadable(name, unread, missing):
            copy_file(content.data, name, folder / name)
    manifest = Manifest(
        limelight=version,
        made_at=at,
        databases=[name for name in content.databases if name not in doubtful],
        files=sum(name not in missing for name in content.files),
        doubtful={name: reason for name, reason in doubtful.items() if name not in missing},
    )
    write_manifest(folder, manifest)
    make_private(folder)
    size = sum(path.stat().st_size for path in walk(folder) if path.is_file())
    return CreatedBackup(**msgspec.structs.asdict(manifest), size=size, unread=unread)


@contextmanager
def _skip_unreadable(name: str, unread: dict[str, str], missing: set[str]) -> Generator[None]:
    """Context manager around the copying of one file. If the file cannot be read, it is left out of the backup.

    An unreadable file is added to `unread`, with the reason. A file that was deleted in the meantime is not.
    """
    try:
        yield
    except FileUnreadable as error:
        unread[name] = str(error)
        missing.add(name)
    except FileRemoved:
        missing.add(name)


def make_private(folder: Path) -> None:
    """Make a folder and its content accessible to the owner only. Executable files stay executable."""
    folder.chmod(0o700)
    for path in walk(folder):
        if not path.is_symlink():
            path.chmod(path.stat().st_mode & 0o700 | (0o700 if path.is_dir() else 0o600))


def _publish(draft: Path, target: Path, progress: Progress) -> None:
    """Rename the checked draft to the target of the backup. If the target is an archive, pack the draft first."""
    backup = draft / "backup"
    if is_archive(target):
        backup = draft / "backup.tar.gz"
        progress(f"packing {target.name}", 0, 1)
        with os.fdopen(os.open(backup, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            with tarfile.open(fileobj=file, mode="w:gz", compresslevel=6) as archive:
                for path in (draft / "backup", *walk(draft / "backup")):
                    archive.add(path, arcname=str(path.relative_to(draft)), recursive=False)
            file.flush()
            os.fsync(file.fileno())
    if target.exists():
        raise FileExistsError(f"{target} was created in the meantime")
    backup.rename(target)
