"""Reads and removes folders with files that agents have created.

No function is recursive, because an agent can nest folders deeper than the recursion limit. No link is followed. Agents
may write into a folder while a backup reads it, so a path is opened one part at a time, and no part may be a link.
"""

import errno
import os
from collections.abc import Generator, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK
"""Flags for opening a file. Non-blocking, because opening a pipe would wait for a writer."""
GONE = {errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.ENXIO}
"""Error numbers that mean that a file was removed, or replaced by a link, a socket or the like."""


class Gone(Exception):
    """The file does not exist any more."""


class Unreadable(Exception):
    """The file exists but cannot be read. The message has the reason."""


@contextmanager
def translate_errors() -> Generator[None]:
    """Context manager that raises Gone or Unreadable in place of an OSError."""
    try:
        yield
    except OSError as error:
        if error.errno in GONE:
            raise Gone from error
        raise Unreadable(error.strerror or str(error)) from error


def open_inside(root: Path, name: str) -> int:
    """Open a file or folder by its path below `root`, and return the descriptor. Raises OSError, also for links."""
    descriptor = os.open(root, os.O_RDONLY | os.O_DIRECTORY)
    for part in name.split("/"):
        try:
            inner = os.open(part, READ, dir_fd=descriptor)
        finally:
            os.close(descriptor)
        descriptor = inner
    return descriptor


def list_folder(root: Path, name: str) -> tuple[list[str], list[str]]:
    """Return the folders and the files in the folder `name`, as paths below `root`. Raises OSError."""
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


# The functions below are for folders that no other process changes.


def walk(folder: Path) -> Iterator[Path]:
    """Yield all files and folders below a folder, each folder before its content. Raises OSError."""
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
    """Remove a file, or a folder with its content, as far as possible. Raises nothing."""
    found = [path]
    with suppress(OSError):
        found.extend(walk(path))
    for inner in reversed(found):
        with suppress(OSError):
            if inner.is_dir() and not inner.is_symlink():
                inner.rmdir()
            else:
                inner.unlink()
