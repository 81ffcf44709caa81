"""Walks, opens and removes trees of files that agents have made.

Nothing here is recursive, because an agent can nest folders as deep as it likes, and no link is followed. Agents write
into workspaces while a backup reads them, so a path there is opened part by part: none of the parts may be a link.
"""

import errno
import os
from collections.abc import Generator, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK
"""Non-blocking, because opening a pipe would wait for a writer."""
GONE = {errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.ENXIO}
"""The file was removed, or replaced by something that is not part of a backup, as a link or a socket."""


class Gone(Exception):
    """The file does not exist any more."""


class Unreadable(Exception):
    """The file exists but cannot be read. The message has the reason."""


@contextmanager
def translate_errors() -> Generator[None]:
    """Raise Gone or Unreadable instead of OSError."""
    try:
        yield
    except OSError as error:
        if error.errno in GONE:
            raise Gone from error
        raise Unreadable(error.strerror or str(error)) from error


def open_inside(root: Path, name: str) -> int:
    """Open a file or folder by its path inside of a folder, and return the descriptor. Raises OSError."""
    descriptor = os.open(root, os.O_RDONLY | os.O_DIRECTORY)
    for part in name.split("/"):
        try:
            inner = os.open(part, READ, dir_fd=descriptor)
        finally:
            os.close(descriptor)
        descriptor = inner
    return descriptor


def list_folder(root: Path, name: str) -> tuple[list[str], list[str]]:
    """Return the folders and the files in one folder, as paths inside of the root. Raises OSError."""
    descriptor = open_inside(root, name)
    folders, files = list[str](), list[str]()
    try:
        with os.scandir(descriptor) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    folders.append(f"{name}/{entry.name}")
                elif entry.is_file(follow_symlinks=False):
                    files.append(f"{name}/{entry.name}")
    finally:
        os.close(descriptor)
    return folders, files


# The functions below are for folders into which no other process writes.


def walk(folder: Path) -> Iterator[Path]:
    """Yield everything inside of a folder, each folder before its content. Raises OSError."""
    pending = [folder]
    while pending:
        for path in sorted(pending.pop().iterdir()):
            yield path
            if path.is_dir() and not path.is_symlink():
                pending.append(path)


def make_folders(folder: Path) -> None:
    """Create a folder and its missing parents. Raises OSError."""
    missing: list[Path] = []
    while not folder.exists():
        missing.append(folder)
        folder = folder.parent
    for path in reversed(missing):
        path.mkdir(mode=0o700)


def remove_tree(path: Path) -> None:
    """Remove a file, or a folder with its content, as far as possible. It raises nothing."""
    found = [path]
    with suppress(OSError):
        found.extend(walk(path))
    for inner in reversed(found):
        with suppress(OSError):
            if inner.is_dir() and not inner.is_symlink():
                inner.rmdir()
            else:
                inner.unlink()
