"""File tools on the workspace of the current session.

Names are virtual: `/notes/a.md` and `notes/a.md` are the same file of the workspace. Names that lead out of it, by `..`
or by a link, are refused.
"""

import os
import threading
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from limelight.builtin.demo.tools import copy_sample_files
from limelight.sources.tool_api import current

MAX_BYTES = 1024 * 1024
MAX_FILES = 500
_copy_lock = threading.Lock()
"""Held while the sample files are copied. Otherwise a tool that runs in parallel could see only some of them."""


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
    """Return the real path of a virtual file name. Raises PermissionError if the path is outside of the workspace."""
    path = (folder / name.strip().lstrip("/")).resolve()
    if not path.is_relative_to(folder):
        raise PermissionError(f"{name} is outside the workspace")
    return path


def _files_below(folder: Path) -> Iterator[str]:
    """Yield the names of all files below a folder.

    The folders are scanned one by one, so that a caller can stop before all are scanned.
    """
    for parent, folders, names in os.walk(folder):
        folders.sort()
        for name in sorted(names):
            path = Path(parent, name)
            if path.is_file():
                yield str(path.relative_to(folder))


class FileTools:
    """File tools as methods, for frameworks that accept functions as tools."""

    def __init__(self, *, sample_files: bool) -> None:
        self._sample_files = sample_files

    def list_files(self) -> list[str]:
        """List the files of the workspace; of very many the first ones, and then that there are more."""
        folder = session_folder(sample_files=self._sample_files)
        found = list(islice(_files_below(folder), MAX_FILES + 1))
        if len(found) <= MAX_FILES:
            return sorted(found)
        return [*sorted(found[:MAX_FILES]), f"… cut here: there are more than {MAX_FILES} files"]

    def read_file(self, path: str) -> str:
        """Read a text file of the workspace.

        Args:
            path: The name of the file, as list_files gives it.
        """
        with self._existing_file(path).open("rb") as stream:
            return stream.read(MAX_BYTES).decode("utf-8", "replace")

    def write_file(self, path: str, content: str) -> str:
        """Write a text file of the workspace. What it held before is replaced.

        Args:
            path: The name of the file.
            content: The whole text.
        """
        file = resolve_path(session_folder(sample_files=self._sample_files), path)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(content, encoding="utf-8")
        return f"wrote {len(content.encode())} bytes to {path}"

    def delete_file(self, path: str) -> str:
        """Delete a file of the workspace.

        Args:
            path: The name of the file, as list_files gives it.
        """
        self._existing_file(path).unlink()
        return f"deleted {path}"

    def _existing_file(self, path: str) -> Path:
        file = resolve_path(session_folder(sample_files=self._sample_files), path)
        if not file.is_file():
            raise FileNotFoundError(f"there is no file {path}")
        return file
