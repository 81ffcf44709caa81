"""A call as a row of the view: one line, or fitted to a screen; what does not fit is cut, arguments first. Pure."""

from rich.cells import cell_len, set_cell_size

from limelight.cli.view.safe import one_line, safe
from limelight.cli.view.story import Call, took

CALL_MARKS = {"running": "▸", "waiting": "?", "done": "✓", "failed": "✗"}
TELLING_CELLS = 12
"""Fewer cells of an argument tell nothing; then the error goes to a line of its own."""


def call_line(call: Call, owner: str = "", *, about: bool = True) -> str:
    """A call in one line, however long: `✓ read_file bees.md  3 ms`."""
    return _joined(_head(call, owner), call.about if about else "", [_error(call), took(call.duration_ms)])


def call_rows(call: Call, owner: str, width: int) -> list[str]:
    """The same in `width` cells: name, error and duration are there, the error in a second line if need be."""
    error, time = _error(call), took(call.duration_ms)
    head = _cut(_head(call, owner), max(TELLING_CELLS, width - cell_len(time) - 2))
    room = _room(head, [error, time], width)
    if not error or room >= min(cell_len(call.about), TELLING_CELLS):
        return [_joined(head, _cut(call.about, room), [error, time])]
    return [_joined(head, _cut(call.about, _room(head, [time], width)), [time]), error]


def _head(call: Call, owner: str) -> str:
    return f"{CALL_MARKS[call.state]} {safe(owner)}{one_line(call.name, 60)}"


def _error(call: Call) -> str:
    return one_line(call.error, 200)


def _joined(head: str, about: str, more: list[str]) -> str:
    line = " ".join(part for part in (head, about) if part)
    return "  ".join([line, *(part for part in more if part)])


def _room(head: str, more: list[str], width: int) -> int:
    """What is left for the argument."""
    return width - cell_len(_joined(head, "", more)) - 1


def _cut(text: str, cells: int) -> str:
    if cell_len(text) <= cells:
        return text
    return set_cell_size(text, cells - 1).rstrip() + "…" if cells > 1 else ""
