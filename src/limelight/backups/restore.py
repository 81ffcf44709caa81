"""Restores a data folder from a backup, which is first prepared and checked in a draft folder.

The data folder may be a mounted volume, which cannot be renamed or replaced. So the draft is a folder inside of it,
whose content is moved up at the end, the database last: a server finds a complete data folder or none.
"""

import platform
import shutil
import tarfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from tempfile import mkdtemp

from limelight.backups.content import DATABASE, MANIFEST, RESTORING, VOLUME, Manifest, read_manifest
from limelight.backups.create import is_archive, make_private
from limelight.backups.file_copy import damage_in
from limelight.errors import SetupError
from limelight.file_trees import remove_tree, walk


def restore(source: Path, data: Path, examine: Callable[[Path], object]) -> Manifest:
    """Restore a backup into a data folder that is empty or does not exist. Return the manifest of the backup.

    `examine` gets the path of the unpacked draft, and raises an error if it cannot be used as a data folder. Raises
    SetupError, and leaves the data folder unchanged, if the backup cannot be restored.
    """
    _check_paths(source, data)
    exists = data.is_dir()
    draft = _make_draft(data)
    try:
        folder = _unpack(source, draft)
        manifest = read_manifest(folder)
        for name in {DATABASE, *manifest.databases}:
            if not (folder / name).is_file():
                raise SetupError(f"{source} is incomplete: {name} is missing")
            if damage := damage_in(folder / name):
                raise SetupError(f"{name} is damaged ({damage}): take an earlier backup")
        (folder / MANIFEST).unlink()
        examine(folder)
        make_private(folder)
        if exists:
            _move_up(folder, data)
        else:
            folder.rename(data)
    except (OSError, EOFError, tarfile.TarError) as error:
        raise SetupError(f"{source} cannot be restored: {error}; {data} is unchanged") from error
    finally:
        remove_tree(draft)
    return manifest


def _check_paths(source: Path, data: Path) -> None:
    if not source.exists():
        raise SetupError(f"there is no {source}")
    if data.resolve().is_relative_to(source.resolve()):
        raise SetupError(f"{data} is inside the backup: choose another folder with --data")
    exists = data.exists() or data.is_symlink()
    found = {path.name for path in data.iterdir()} - {VOLUME} if data.is_dir() else set[str]()
    if RESTORING in found and DATABASE not in found:
        raise SetupError(
            f"{data} has a {RESTORING}: another restore is under way, or was cut off. If so, remove all that is in"
            f" {data} and restore again"
        )
    if found or (exists and not data.is_dir()):
        raise SetupError(
            f"{data} is not empty: restore into a new folder with --data, or end its server and move it away first"
        )


def _make_draft(data: Path) -> Path:
    try:
        if data.is_dir():
            (data / RESTORING).mkdir(mode=0o700)
            return data / RESTORING
        data.absolute().parent.mkdir(parents=True, exist_ok=True)
        return Path(mkdtemp(prefix=f".{data.name}.", dir=data.absolute().parent))
    except OSError as error:
        raise SetupError(f"{data} cannot be made ({error.strerror}): choose another folder with --data") from error


def _unpack(source: Path, draft: Path) -> Path:
    """Copy or unpack a backup into the draft folder, and return the folder with its content."""
    folder = draft / "backup"
    if source.is_dir():
        folder.mkdir(mode=0o700)
        for path in walk(source):
            target = folder / path.relative_to(source)
            if path.is_dir() and not path.is_symlink():
                target.mkdir(mode=0o700)
            else:
                shutil.copy2(path, target, follow_symlinks=False)
    elif is_archive(source):
        if not hasattr(tarfile, "data_filter"):
            raise SetupError(
                f"to unpack {source} safely, Python 3.11.4 or newer is needed, and this is {platform.python_version()}:"
                " upgrade it, or unpack the file yourself and restore the folder"
            )
        with tarfile.open(source, "r:gz") as archive:
            archive.extractall(draft, filter="data")  # rejects paths outside of the folder
    else:
        raise SetupError(f"{source} is neither a folder nor a .tar.gz")
    return folder


def _move_up(folder: Path, data: Path) -> None:
    """Move the content of the draft into the data folder. If that fails, remove what was already moved."""
    moved: list[Path] = []
    try:
        for path in sorted(folder.iterdir(), key=lambda path: path.name == DATABASE):
            target = data / path.name
            if target.exists():
                raise FileExistsError(f"{target} was created in the meantime: has a server been started?")
            path.rename(target)
            moved.append(target)
    except BaseException:
        for path in moved:
            remove_tree(path)
        raise
    with suppress(OSError):  # a volume may belong to another user; its content is private anyway
        data.chmod(0o700)
