"""Makes a data folder of a backup. It is put together and checked beside its place, and moved there at the end."""

import shutil
import tarfile
from collections.abc import Callable
from pathlib import Path
from tempfile import mkdtemp

from limelight.backups.content import DATABASE, MANIFEST
from limelight.backups.making import check_database, is_archive, make_private
from limelight.backups.manifest import Manifest, read_manifest
from limelight.errors import SetupError


def restore(source: Path, data: Path, examine: Callable[[Path], object]) -> Manifest:
    """Restore into a folder that is empty or not there. `examine` looks at what would be it, and raises if it is no
    good. Raises SetupError."""
    if not source.exists():
        raise SetupError(f"there is no {source}")
    if data.is_symlink() or (data.exists() and (not data.is_dir() or any(data.iterdir()))):
        raise SetupError(
            f"{data} is not empty: restore into a new folder with --data, or end its server and move it away first"
        )
    try:
        data.absolute().parent.mkdir(parents=True, exist_ok=True)
        draft = Path(mkdtemp(prefix=f".{data.name}.", dir=data.absolute().parent))
    except OSError as error:
        raise SetupError(f"{data} cannot be made ({error.strerror}): choose another folder with --data") from error
    try:
        folder = _unpacked(source, draft)
        manifest = read_manifest(folder)
        for name in {DATABASE, *manifest.databases}:
            if not (folder / name).is_file():
                raise SetupError(f"{source} is not whole: {name} is missing")
            check_database(folder / name)
        (folder / MANIFEST).unlink()
        examine(folder)
        make_private(folder)
        folder.rename(data)
    except (OSError, EOFError, tarfile.TarError) as error:
        raise SetupError(f"{source} cannot be restored: {error}; {data} is as it was") from error
    finally:
        shutil.rmtree(draft, ignore_errors=True)
    return manifest


def _unpacked(source: Path, draft: Path) -> Path:
    """A copy of what is in the backup: the folder itself stays as it is."""
    folder = draft / "backup"
    if source.is_dir():
        shutil.copytree(source, folder, symlinks=True)
    elif is_archive(source):
        with tarfile.open(source, "r:gz") as archive:
            archive.extractall(draft, filter="data")  # nothing in it can lead out of the folder
    else:
        raise SetupError(f"{source} is neither a folder nor a .tar.gz")
    return folder
