"""Tools that list, read, write and delete files in the workspace of the current session.

Names are virtual: `/notes/a.md` and `notes/a.md` are the same file of the workspace. Names that lead out of it, by `..`
or by a link, are refused.

Commands of the agent may change the workspace while a tool runs. So a name is resolved first, and the resolved path is
then opened one part at a time, from the descriptor of the workspace, without following a link.
"""

import errno
import os
import stat
import threading
from collections.abc import Iterator
from contextlib import suppress
from itertools import islice
from pathlib import Path

from limelight.builtin.demo.tools import copy_sample_files
from limelight.file_trees import READ, list_folder, open_file, open_inside, remove_tree, write_bytes
from limelight.sources.tool_api import current

MAX_BYTES = 1024 * 1024
MAX_FILES = 500
DELETE_SECONDS = 30
"""How long the deletion of a folder may take. A command may fill the folder at the same time."""
_copy_lock = threading.Lock()
"""Lock held while the sample files are copied, so that a tool running in parallel does not see only some of them."""


def session_folder(*, sample_files: bool) -> Path:
    """Return the workspace of the current run. With `sample_files`, copy the sample files into it if it is empty."""
    context = current()
    if context is None:
        raise RuntimeError("file tools work only while an agent of Limelight runs")
    folder = context.workspace.resolve()
    if sample_files:
        with _copy_lock:
            copy_sample_files(folder)
    return folder


def resolve_path(folder: Path, name: str) -> Path:
    """Return the real path of a virtual file name. Raises PermissionError if it is outside of the workspace."""
    path = (folder / name.strip().lstrip("/")).resolve()
    if not path.is_relative_to(folder):
        raise PermissionError(f"{name} is outside the workspace")
    return path


def inner_path(folder: Path, name: str) -> str:
    """Return the real path of a virtual file name, relative to the workspace; "" is the workspace.

    Raises PermissionError.
    """
    path = resolve_path(folder, name).relative_to(folder)
    return "" if path == Path() else path.as_posix()


def is_file(folder: Path, path: str) -> bool:
    """Whether there is a regular file at a path below the workspace."""
    with suppress(OSError), open_file(folder, path):
        return True
    return False


def delete(folder: Path, path: str, *, folders: bool = False) -> None:
    """Delete a file of the workspace or, if `folders`, a folder with its content. Raises OSError."""
    parent, _, name = path.rpartition("/")
    if not name:
        raise PermissionError(errno.EACCES, "the workspace itself cannot be deleted")
    descriptor = open_inside(folder, parent, READ | os.O_DIRECTORY)
    try:
        mode = os.stat(name, dir_fd=descriptor, follow_symlinks=False).st_mode
        if not (folders and stat.S_ISDIR(mode)):
            os.unlink(name, dir_fd=descriptor)
            return
        remove_tree(name, dir_fd=descriptor, seconds=DELETE_SECONDS)
        with suppress(FileNotFoundError):
            os.stat(name, dir_fd=descriptor, follow_symlinks=False)
            raise OSError(errno.ENOTEMPTY, "a part of the folder could not be removed")
    finally:
        os.close(descriptor)


def files_below(folder: Path, path: str = "") -> Iterator[str]:
    """Yield the paths of all files in a folder of the workspace and its subfolders, without links.

    The folders are scanned one by one, so that a caller can stop before all are scanned.
    """
    pending = [path]
    while pending:
        try:
            folders, files = list_folder(folder, pending.pop())
        except OSError:  # the folder was removed, or replaced by a link
            continue
        yield from sorted(files)
        pending.extend(sorted(folders, reverse=True))


class FileTools:
    """The file tools of the Agno agents: list, read, write and delete files of the session's workspace."""

    def __init__(self, *, sample_files: bool) -> None:
        self._sample_files = sample_files

    def list_files(self) -> list[str]:
        """List the files of the workspace, up to a limit. If there are more, the last entry says so."""
        folder = session_folder(sample_files=self._sample_files)
        found = list(islice(files_below(folder), MAX_FILES + 1))
        if len(found) <= MAX_FILES:
            return sorted(found)
        return [*sorted(found[:MAX_FILES]), f"… cut here: there are more than {MAX_FILES} files"]

    def read_file(self, path: str) -> str:
        """Read a text file of the workspace.

        Args:
            path: The name of the file, as returned by list_files.
        """
        with open_file(*self._existing_file(path)) as stream:
            return stream.read(MAX_BYTES).decode("utf-8", "replace")

    def write_file(self, path: str, content: str) -> str:
        """Write a text file of the workspace, replacing its previous content.

        Args:
            path: The name of the file.
            content: The complete text.
        """
        folder = session_folder(sample_files=self._sample_files)
        write_bytes(folder, inner_path(folder, path), content.encode())
        return f"wrote {len(content.encode())} bytes to {path}"

    def delete_file(self, path: str) -> str:
        """Delete a file of the workspace.

        Args:
            path: The name of the file, as returned by list_files.
        """
        delete(*self._existing_file(path))
        return f"deleted {path}"

    def _existing_file(self, path: str) -> tuple[Path, str]:
        """Return the workspace and the path of a file in it. Raises FileNotFoundError if there is no such file."""
        folder = session_folder(sample_files=self._sample_files)
        inner = inner_path(folder, path)
        if not is_file(folder, inner):
            raise FileNotFoundError(f"there is no file {path}")
        return folder, inner
