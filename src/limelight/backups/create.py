"""Makes a backup: a folder, or the same as a .tar.gz.

Everything is put together beside the target and gets its name at the end, so there is never half a backup. What is
copied is checked before that. A server that runs goes on as ever.
"""

import os
import sqlite3
import tarfile
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import mkdtemp

import msgspec

from limelight.backups.content import Content, content_of
from limelight.backups.file_copy import Tell, copy_as_it_is, copy_databases, copy_file
from limelight.backups.manifest import Manifest, Note, write_manifest, write_note
from limelight.errors import SetupError
from limelight.file_trees import Gone, Unreadable, below, remove

ARCHIVES = (".tar.gz", ".tgz")


class Made(Manifest, frozen=True, kw_only=True):
    """A backup that was made, how large it is, and what is not in it because it cannot be read, with the reason."""

    size: int
    unread: dict[str, str]


def is_archive(path: Path) -> bool:
    return path.name.endswith(ARCHIVES)


def make_backup(data: Path, store: Path, target: Path, *, at: int, version: str, tell: Tell) -> Made:
    """Back the data folder up, with the store's file, which may be elsewhere. Raises SetupError."""
    if target.exists() or target.is_symlink():
        raise SetupError(f"{target} is there already: a backup is never written over, choose another name")
    if not store.is_file():
        raise SetupError(f"there is nothing to back up: no {store}")
    if target.resolve().is_relative_to(data.resolve()):  # also by way of a link
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
        remove(draft)
    with suppress(OSError):  # a disk that can only be read is a good reason for a backup
        write_note(data, Note(at, str(target.absolute())))
    return made


def _fill(folder: Path, content: Content, at: int, version: str, tell: Tell) -> Made:
    folder.mkdir(mode=0o700)
    doubtful = copy_databases(content.databases, folder, tell)
    unread, missing = dict(content.unread), set[str]()
    for name in doubtful:
        with _leaving_out(name, unread, missing):
            copy_as_it_is(content.databases[name], folder / name)
    for done, name in enumerate(content.files):
        tell("files", done, len(content.files))
        with _leaving_out(name, unread, missing):
            copy_file(content.data, name, folder / name)
    manifest = Manifest(
        limelight=version,
        made_at=at,
        databases=[name for name in content.databases if name not in doubtful],
        files=sum(name not in missing for name in content.files),
        doubtful={name: why for name, why in doubtful.items() if name not in missing},
    )
    write_manifest(folder, manifest)
    make_private(folder)
    size = sum(path.stat().st_size for path in below(folder) if path.is_file())
    return Made(**msgspec.structs.asdict(manifest), size=size, unread=unread)


@contextmanager
def _leaving_out(name: str, unread: dict[str, str], missing: set[str]) -> Generator[None]:
    """What an agent has removed meanwhile is silently left out; what cannot be read is to be told."""
    try:
        yield
    except Unreadable as why:
        unread[name] = str(why)
        missing.add(name)
    except Gone:
        missing.add(name)


def make_private(folder: Path) -> None:
    """For its owner's eyes only, with all that is in it. What can be run still can."""
    folder.chmod(0o700)
    for path in below(folder):
        if not path.is_symlink():
            path.chmod(path.stat().st_mode & 0o700 | (0o700 if path.is_dir() else 0o600))


def _place(draft: Path, target: Path, tell: Tell) -> None:
    """Give it its name, all at once."""
    made = draft / "backup"
    if is_archive(target):
        made = draft / "backup.tar.gz"
        tell(f"packing {target.name}", 0, 1)
        with os.fdopen(os.open(made, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            with tarfile.open(fileobj=file, mode="w:gz", compresslevel=6) as archive:
                for path in (draft / "backup", *below(draft / "backup")):
                    archive.add(path, arcname=str(path.relative_to(draft)), recursive=False)
            file.flush()
            os.fsync(file.fileno())
    if target.exists():  # somebody was faster
        raise FileExistsError(f"{target} is there meanwhile")
    made.rename(target)
