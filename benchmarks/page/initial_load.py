"""What a browser loads before it shows anything: the page's entry and all that this imports at once, compressed."""

import re
from pathlib import Path

ENTRIES = re.compile(r'<(?:script|link rel="modulepreload")[^>]*(?:src|href)="\./([^"]+\.js)"')
STATIC = re.compile(r'(?:\bfrom|\bimport)\s*"\./([^"]+\.js)"')
"""What is loaded later stands in brackets, as `import(…)`."""


def first_scripts(folder: Path) -> list[Path]:
    """The files of a built page that its first load needs; those of lazy panes are not among them."""
    todo = [folder / name for name in ENTRIES.findall((folder / "index.html").read_text())]
    found: list[Path] = []
    while todo:
        file = todo.pop()
        if file in found:
            continue
        found.append(file)
        todo += [file.parent / name for name in STATIC.findall(file.read_text())]
    return found


def compressed_size(file: Path) -> int:
    """Bytes over the wire: the build's compressed twin is sent if there is one."""
    twin = file.with_name(f"{file.name}.gz")
    return (twin if twin.exists() else file).stat().st_size


def first_load(folder: Path) -> int:
    return sum(compressed_size(file) for file in first_scripts(folder))
