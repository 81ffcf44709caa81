"""The scripts that a browser loads before it shows anything: the entry of the page and its static imports."""

import re
from pathlib import Path

ENTRIES = re.compile(r'<(?:script|link rel="modulepreload")[^>]*(?:src|href)="\./([^"]+\.js)"')
STATIC = re.compile(r'(?:\bfrom|\bimport)\s*"\./([^"]+\.js)"')
"""Matches static imports, not `import(…)`, which loads a script later."""


def first_scripts(folder: Path) -> list[Path]:
    """Return the script files that the first load of a built page needs, without those of lazy panes."""
    pending = [folder / name for name in ENTRIES.findall((folder / "index.html").read_text())]
    found: list[Path] = []
    while pending:
        file = pending.pop()
        if file in found:
            continue
        found.append(file)
        pending += [file.parent / name for name in STATIC.findall(file.read_text())]
    return found


def compressed_size(file: Path) -> int:
    """Return the bytes that the server sends for a file: the compressed file of the build if there is one."""
    compressed = file.with_name(f"{file.name}.gz")
    return (compressed if compressed.exists() else file).stat().st_size


def first_load(folder: Path) -> int:
    """Return the bytes of all scripts of the first load."""
    return sum(compressed_size(file) for file in first_scripts(folder))
