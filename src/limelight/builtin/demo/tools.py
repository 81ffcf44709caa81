"""The tools of the demo agent: they read and write files of the workspace."""

import re
from importlib.resources import files
from pathlib import Path
from typing import Any

from limelight.file_trees import list_folder, open_file, write_bytes

MAX_FILES = 500
MAX_BYTES = 1024 * 1024


def copy_sample_files(folder: Path) -> None:
    """Copy the sample files into a workspace, if the workspace is empty."""
    if any(folder.iterdir()):
        return
    for sample in files("limelight.builtin.demo").joinpath("files").iterdir():
        write_bytes(folder, sample.name, sample.read_bytes())


def list_files(folder: Path) -> list[dict[str, Any]]:
    """Return the names and sizes of a workspace's files, up to a limit; a last entry counts the remaining files."""
    paths = [folder / name for name in sorted(list_folder(folder, "")[1])]
    listed: list[dict[str, Any]] = [{"name": path.name, "bytes": path.lstat().st_size} for path in paths[:MAX_FILES]]
    more = len(paths) - len(listed)
    return [*listed, {"cut": f"{more} more files are not listed"}] if more else listed


def read_file(folder: Path, name: str) -> str:
    """Return the text of one file in the workspace."""
    path = (folder / name).resolve()
    if path.parent != folder.resolve():
        raise PermissionError(f"{name} is outside the workspace")
    try:
        return _read_text(folder, path.name)
    except (FileNotFoundError, IsADirectoryError):
        raise FileNotFoundError(f"there is no file {name}") from None


def search(folder: Path, words: list[str]) -> list[dict[str, Any]]:
    """Return the lines of the workspace's files that contain most of the words, best first."""
    found: list[dict[str, Any]] = []
    paths = [folder / name for name in sorted(list_folder(folder, "")[1]) if name != "report.md"]
    for path in paths[:MAX_FILES]:
        for number, line in enumerate(_read_text(folder, path.name).splitlines(), start=1):
            if not line or line.startswith("#"):
                continue
            hits = sum(1 for word in words if re.search(rf"\b{re.escape(word[:6])}", line, re.IGNORECASE))
            hits += sum(1 for word in words if path.stem.lower().startswith(word[:4].lower()))
            if hits:
                found.append({"file": path.name, "line": number, "text": line, "hits": hits})
    return sorted(found, key=lambda hit: -hit["hits"])[:5]


def write_file(folder: Path, name: str, text: str) -> str:
    """Write a file into the workspace, and return a message with its size."""
    write_bytes(folder, Path(name).name, text.encode())
    return f"wrote {len(text.encode())} bytes to {name}"


def _read_text(folder: Path, name: str) -> str:
    with open_file(folder, name) as stream:
        return stream.read(MAX_BYTES).decode("utf-8", "replace")
