"""Trees of files, however deep an agent has made them: nothing here calls itself, and no link is followed.

Agents write in workspaces while a backup reads them. So a path there is opened part by part, and no part of it may have
become a link meanwhile.
"""

import errno
import os
from collections.abc import Generator, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK
"""Without waiting: a pipe would wait for a writer."""
GONE = {errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.ENXIO}
"""It was removed, or something is in its place that does not belong into a backup: a link, a socket."""


class Gone(Exception):
    """It is not there any more."""


class Unreadable(Exception):
    """It is there. Says why it cannot be read."""


@contextmanager
def looking() -> Generator[None]:
    """Raises Gone or Unreadable for what the system says about somebody else's file."""
    try:
        yield
    except OSError as error:
        if error.errno in GONE:
            raise Gone from error
        raise Unreadable(error.strerror or str(error)) from error


def open_below(root: Path, name: str) -> int:
    """A descriptor for reading of what has this path below the folder. Raises OSError."""
    at = os.open(root, os.O_RDONLY | os.O_DIRECTORY)
    for part in name.split("/"):
        try:
            inner = os.open(part, READ, dir_fd=at)
        finally:
            os.close(at)
        at = inner
    return at


def entries_of(root: Path, name: str) -> tuple[list[str], list[str]]:
    """The folders and the files in one folder, by their paths below the root. Raises OSError."""
    descriptor = open_below(root, name)
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


# Where nobody else writes.


def below(folder: Path) -> Iterator[Path]:
    """All that is in a folder, folders before what is in them. Raises OSError."""
    waiting = [folder]
    while waiting:
        for path in sorted(waiting.pop().iterdir()):
            yield path
            if path.is_dir() and not path.is_symlink():
                waiting.append(path)


def make_folders(folder: Path) -> None:
    """The folder and those above it that are not there. Raises OSError."""
    missing: list[Path] = []
    while not folder.exists():
        missing.append(folder)
        folder = folder.parent
    for path in reversed(missing):
        path.mkdir(mode=0o700)


def remove(path: Path) -> None:
    """The file or folder with all that is in it, as far as that can be."""
    found = [path]
    with suppress(OSError):
        found.extend(below(path))
    for inner in reversed(found):
        with suppress(OSError):
            if inner.is_dir() and not inner.is_symlink():
                inner.rmdir()
            else:
                inner.unlink()
