"""Reads, writes and removes files and folders that agents have created, safely against links and deep nesting.

No function is recursive, because an agent can nest folders deeper than the recursion limit. No link is followed. Agents
may change a folder while it is read or removed, so a path is opened one part at a time, and no part may be a link.
"""

import errno
import math
import os
import stat
import time
from collections.abc import Generator, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK
"""Flags for opening a file; non-blocking, because opening a pipe would otherwise wait for a writer."""
GONE = {errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.ENXIO}
"""Error numbers which mean that a file was removed, or replaced by a link, a socket or similar."""


class FileRemoved(Exception):
    """Raised if a file was removed, or replaced by a link, after its folder was listed."""


class FileUnreadable(Exception):
    """Raised if a file exists but cannot be read. The message has the reason."""


@contextmanager
def translate_errors() -> Generator[None]:
    """Raise FileRemoved or FileUnreadable in place of an OSError, within a `with` block."""
    try:
        yield
    except OSError as error:
        if error.errno in GONE:
            raise FileRemoved from error
        raise FileUnreadable(error.strerror or str(error)) from error


def open_inside(root: Path, name: str, flags: int = READ, *, create_folders: bool = False) -> int:
    """Open a file or folder by its path below `root` and return the file descriptor. Raises OSError, also for links.

    `name` "" or "." is `root` itself. A new file gets the mode 0644. `create_folders` creates the missing parents.
    """
    parts = [part for part in name.split("/") if part not in ("", ".")]
    if ".." in parts:
        raise PermissionError(errno.EACCES, "the path leads out of its folder")
    descriptor = os.open(root, os.O_RDONLY | os.O_DIRECTORY)
    for position, part in enumerate(parts, start=1):
        is_last = position == len(parts)
        try:
            if create_folders and not is_last:
                with suppress(FileExistsError):
                    os.mkdir(part, dir_fd=descriptor)
            inner = os.open(part, (flags if is_last else READ) | os.O_NOFOLLOW, 0o644, dir_fd=descriptor)
        finally:
            os.close(descriptor)
        descriptor = inner
    return descriptor


@contextmanager
def open_file(root: Path, path: str, flags: int = READ, *, create_folders: bool = False) -> Generator[BinaryIO]:
    """Open a regular file by its path below `root`. Raises OSError, also if a part of the path is a link."""
    descriptor = open_inside(root, path, flags | os.O_NONBLOCK, create_folders=create_folders)
    try:
        mode = os.fstat(descriptor).st_mode
        if stat.S_ISDIR(mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        if not stat.S_ISREG(mode):
            raise PermissionError(errno.EACCES, "it is not a regular file")
        with os.fdopen(descriptor, "wb" if flags & os.O_WRONLY else "rb", closefd=False) as file:
            yield file
    finally:
        os.close(descriptor)


def read_bytes(root: Path, path: str, max_bytes: int) -> bytes:
    """Return the content of a file below `root`. Raises OSError, also if the file is larger than `max_bytes`."""
    with open_file(root, path) as file:
        size = os.fstat(file.fileno()).st_size
        content = file.read(max_bytes + 1) if size <= max_bytes else b""
        if size > max_bytes or len(content) > max_bytes:
            raise OSError(errno.EFBIG, f"the file is larger than {max_bytes} bytes, which is the limit")
        return content


def write_bytes(root: Path, path: str, content: bytes) -> None:
    """Write a file below `root` and create its folder if needed. Raises OSError."""
    with open_file(root, path, os.O_WRONLY | os.O_CREAT, create_folders=True) as file:
        file.truncate(0)
        file.write(content)


def list_folder(root: Path, name: str) -> tuple[list[str], list[str]]:
    """Return the folders and the files in the folder `name`, "" for `root`, as paths below `root`. Raises OSError."""
    descriptor = open_inside(root, name)
    folders, files = list[str](), list[str]()
    try:
        with os.scandir(descriptor) as entries:
            for entry in entries:
                path = f"{name}/{entry.name}" if name else entry.name
                if entry.is_dir(follow_symlinks=False):
                    folders.append(path)
                elif entry.is_file(follow_symlinks=False):
                    files.append(path)
    finally:
        os.close(descriptor)
    return folders, files


def remove_tree(path: Path | str, *, dir_fd: int | None = None, seconds: float = math.inf) -> None:
    """Remove a file, or a folder with its content, as far as possible. Never raises an error.

    `path` is relative to the folder `dir_fd`, if given. No link in the folder is followed, even if a process changes
    the folder at the same time. `seconds` limits the time, for a folder that a process fills again and again.
    """
    deadline = time.monotonic() + seconds
    try:
        folder = os.open(path, READ | os.O_DIRECTORY, dir_fd=dir_fd)
    except OSError:
        with suppress(OSError):
            os.unlink(path, dir_fd=dir_fd)
        return
    try:
        number = 0
        while _empty_once(folder, number, deadline):
            number += 1
    finally:
        os.close(folder)
    with suppress(OSError):
        os.rmdir(path, dir_fd=dir_fd)


def _empty_once(folder: int, number: int, deadline: float) -> bool:
    """Remove the files of a folder and of its subfolders. Return whether a further call can remove more.

    Folders in the subfolders are moved up into the folder, so that any depth needs two descriptors only. `number` makes
    their new names unique.
    """
    changes = 0
    for name in _names(folder):
        if time.monotonic() > deadline:
            return False
        if not _unlinked(folder, name):
            changes += _move_content_up(folder, name, f".removed-{number}-{changes}")
            with suppress(OSError):
                os.rmdir(name, dir_fd=folder)
                changes += 1
    return changes > 0


def _move_content_up(folder: int, name: str, new_name: str) -> int:
    """Remove the files of the subfolder `name`, and move its folders into `folder`. Return their number."""
    try:
        inner = os.open(name, READ | os.O_DIRECTORY, dir_fd=folder)
    except OSError:
        return 0
    moved = 0
    try:
        os.fchmod(inner, 0o700)  # the entries of a read-only folder cannot be removed
        for entry in _names(inner):
            if not _unlinked(inner, entry):
                with suppress(OSError):
                    os.rename(entry, f"{new_name}-{moved}", src_dir_fd=inner, dst_dir_fd=folder)
                    moved += 1
    except OSError:
        pass
    finally:
        os.close(inner)
    return moved


def _unlinked(folder: int, name: str) -> bool:
    """Remove an entry of a folder that is not a folder itself. Return whether it is removed."""
    try:
        os.unlink(name, dir_fd=folder)
    except OSError:
        return False
    return True


def _names(folder: int) -> list[str]:
    try:
        return os.listdir(folder)
    except OSError:
        return []


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
