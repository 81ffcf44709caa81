"""Makes a backup: a folder, or the same as a .tar.gz.

Everything is put together beside the target and gets its name at the end, so there is never half a backup. What is
copied is checked before that. A server that runs goes on as ever.
"""

import os
import shutil
import sqlite3
import tarfile
from collections.abc import Callable
from contextlib import ExitStack, closing, suppress
from pathlib import Path
from tempfile import mkdtemp

from limelight.backups.content import Content, content_of
from limelight.backups.manifest import Manifest, Note, write_manifest, write_note
from limelight.databases import copy, faults_of, hold, reading
from limelight.errors import SetupError

ARCHIVES = (".tar.gz", ".tgz")
Tell = Callable[[str, int, int], None]
"""Told what is being done, how much of it is done, and how much there is."""


class Made(Manifest, frozen=True, kw_only=True):
    """A backup that was made, and how large it is."""

    size: int


def is_archive(path: Path) -> bool:
    return path.name.endswith(ARCHIVES)


def make_backup(data: Path, store: Path, target: Path, *, at: int, version: str, tell: Tell) -> Made:
    """Back the data folder up, with the store's file, which may be elsewhere. Raises SetupError."""
    if target.exists() or target.is_symlink():
        raise SetupError(f"{target} is there already: a backup is never written over, choose another name")
    if not store.is_file():
        raise SetupError(f"there is nothing to back up: no {store}")
    if target.absolute().is_relative_to(data.absolute()):
        raise SetupError(f"{target} is inside the data folder: a backup belongs somewhere else")
    try:
        target.absolute().parent.mkdir(parents=True, exist_ok=True)
        draft = Path(mkdtemp(prefix=f".{target.name}.", dir=target.absolute().parent))  # for its owner's eyes only
    except OSError as error:
        raise SetupError(f"{target} cannot be made ({error.strerror}): choose another place") from error
    try:
        made = _fill(draft / "backup", content_of(data, store), at, version, tell)
        _place(draft, target, tell)
    except (OSError, sqlite3.Error, tarfile.TarError) as error:
        raise SetupError(f"the backup cannot be made: {error}; nothing is left of it") from error
    finally:
        shutil.rmtree(draft, ignore_errors=True)
    with suppress(OSError):  # a disk that can only be read is a good reason for a backup
        write_note(data, Note(at, str(target.absolute())))
    return made


def _fill(folder: Path, content: Content, at: int, version: str, tell: Tell) -> Made:
    folder.mkdir(mode=0o700)
    with ExitStack() as stack:
        # All are held first, so that what they know of each other fits together.
        sources = {name: stack.enter_context(closing(reading(path))) for name, path in content.databases.items()}
        for source in sources.values():
            stack.enter_context(hold(source))
        for name, source in sources.items():
            copy(source, folder / name, lambda done, all_, name=name: tell(name, done, all_))
    for name in content.databases:
        tell(f"checking {name}", 0, 1)
        check_database(folder / name)
    for done, (name, path) in enumerate(content.files.items()):
        tell("files", done, len(content.files))
        _copy_file(path, folder / name)
    manifest = Manifest(limelight=version, made_at=at, databases=[*content.databases], files=len(content.files))
    write_manifest(folder, manifest)
    make_private(folder)
    size = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
    return Made(limelight=version, made_at=at, databases=manifest.databases, files=manifest.files, size=size)


def check_database(path: Path) -> None:
    """Raises SetupError if a copy is damaged."""
    try:
        with closing(sqlite3.connect(path)) as db:
            faults = faults_of(db)
    except sqlite3.DatabaseError as error:
        faults = str(error)
    if faults:
        raise SetupError(f"{path.name} is damaged ({faults}): take an earlier backup")


def make_private(folder: Path) -> None:
    """For its owner's eyes only, with all that is in it. What can be run still can."""
    folder.chmod(0o700)
    for path in folder.rglob("*"):
        if not path.is_symlink():
            path.chmod(path.stat().st_mode & 0o700 | (0o700 if path.is_dir() else 0o600))


def _copy_file(path: Path, target: Path) -> None:
    """A file that an agent has removed meanwhile is none any more."""
    target.parent.mkdir(parents=True, exist_ok=True)
    with suppress(FileNotFoundError):
        shutil.copy(path, target)


def _place(draft: Path, target: Path, tell: Tell) -> None:
    """Give it its name, all at once."""
    made = draft / "backup"
    if is_archive(target):
        made = draft / "backup.tar.gz"
        tell(f"packing {target.name}", 0, 1)
        with os.fdopen(os.open(made, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            with tarfile.open(fileobj=file, mode="w:gz", compresslevel=6) as archive:
                archive.add(draft / "backup", arcname="backup")
            file.flush()
            os.fsync(file.fileno())
    if target.exists():  # somebody was faster
        raise FileExistsError(f"{target} is there meanwhile")
    made.rename(target)
