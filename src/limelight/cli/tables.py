"""Lists as text: a line each, in columns, and times as people write them."""

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime


def lines_of(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """The head and the rows, however long they are: for other programs too."""
    widths = [max(map(len, column)) for column in zip(columns, *rows, strict=True)]
    for row in (columns, *rows):
        yield "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()


def when(milliseconds: int) -> str:
    return datetime.fromtimestamp(milliseconds / 1000, UTC).astimezone().strftime("%Y-%m-%d %H:%M")


def megabytes(size: int) -> str:
    return f"{size / 1024**2:.1f} MB"


def printable(name: str) -> str:
    """A file's name, which may hold anything, in one line and without harm to a terminal."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in name)
