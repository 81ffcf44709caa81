"""The files of the session that an agent works for: one folder that nobody leaves.

Names are virtual: `/notes/a.md` and `notes/a.md` are the same file of the folder. Whatever leads out of it, by `..`, by
a link or otherwise, is refused.
"""

import os
import threading
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from limelight.builtin.demo.tools import seed
from limelight.sources.tool_api import current

MOST_BYTES = 1024 * 1024
MOST_FILES = 500
_seeding = threading.Lock()
"""Tools run side by side: the second is not to see a folder that is half full."""


def session_folder(*, samples: bool) -> Path:
    """The folder of the run that this code is a part of. `samples`: an empty one gets the sample files."""
    context = current()
    if context is None:
        raise RuntimeError("there are files only while an agent of Limelight runs")
    folder = context.workspace.resolve()
    if samples:
        with _seeding:
            seed(folder)
    return folder


def inside(folder: Path, name: str) -> Path:
    """The file of that name in the folder. Raises PermissionError if it would be elsewhere."""
    path = (folder / name.strip().lstrip("/")).resolve()
    if not path.is_relative_to(folder):
        raise PermissionError(f"{name} is outside the workspace")
    return path


def _files_below(folder: Path) -> Iterator[str]:
    """Their names, folder by folder, so that nobody has to look at all of them to know the first."""
    for place, folders, names in os.walk(folder):
        folders.sort()
        for name in sorted(names):
            path = Path(place, name)
            if path.is_file():
                yield str(path.relative_to(folder))


class Files:
    """Plain functions on the session's files, for frameworks that take functions as tools."""

    def __init__(self, *, samples: bool) -> None:
        self._samples = samples

    def list_files(self) -> list[str]:
        """List the files of the workspace; of very many the first ones, and then that there are more."""
        folder = session_folder(samples=self._samples)
        found = list(islice(_files_below(folder), MOST_FILES + 1))
        if len(found) <= MOST_FILES:
            return sorted(found)
        return [*sorted(found[:MOST_FILES]), f"… cut here: there are more than {MOST_FILES} files"]

    def read_file(self, path: str) -> str:
        """Read a text file of the workspace.

        Args:
            path: The name of the file, as list_files gives it.
        """
        with self._existing(path).open("rb") as stream:
            return stream.read(MOST_BYTES).decode("utf-8", "replace")

    def write_file(self, path: str, content: str) -> str:
        """Write a text file of the workspace. What it held before is replaced.

        Args:
            path: The name of the file.
            content: The whole text.
        """
        file = inside(session_folder(samples=self._samples), path)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(content, encoding="utf-8")
        return f"wrote {len(content.encode())} bytes to {path}"

    def delete_file(self, path: str) -> str:
        """Delete a file of the workspace.

        Args:
            path: The name of the file, as list_files gives it.
        """
        self._existing(path).unlink()
        return f"deleted {path}"

    def _existing(self, path: str) -> Path:
        file = inside(session_folder(samples=self._samples), path)
        if not file.is_file():
            raise FileNotFoundError(f"there is no file {path}")
        return file
