"""A call as a row of the view: one line, or fitted to a screen; what does not fit is cut, arguments first. Pure."""

from rich.cells import cell_len, set_cell_size

from limelight.cli.view.sanitize import one_line, safe
from limelight.cli.view.state import Call, took
from limelight.events import NO_RESULT_SEEN

CALL_MARKS = {"running": "▸", "waiting": "?", "done": "✓", "failed": "✗", "unseen": "○"}
ENDED = ("done", "failed", "unseen")
"""The states of calls that are over."""
TELLING_CELLS = 12
"""Fewer cells of an argument tell nothing; then the error goes to a line of its own."""


def call_line(call: Call, owner: str = "", *, about: bool = True) -> str:
    """A call in one line, however long: `✓ read_file bees.md  3 ms`."""
    return _joined(_head(call, owner), call.about if about else "", [_remark(call), took(call.duration_ms)])


def call_rows(call: Call, owner: str, width: int) -> list[str]:
    """The same in `width` cells: name, remark and duration are there, the remark in a second line if need be."""
    remark, time = _remark(call), took(call.duration_ms)
    head = _cut(_head(call, owner), max(TELLING_CELLS, width - cell_len(time) - 2))
    room = _room(head, [remark, time], width)
    if not remark or room >= min(cell_len(call.about), TELLING_CELLS):
        return [_joined(head, _cut(call.about, room), [remark, time])]
    return [_joined(head, _cut(call.about, _room(head, [time], width)), [time]), remark]


def _head(call: Call, owner: str) -> str:
    return f"{CALL_MARKS[call.state]} {safe(owner)}{one_line(call.name, 60)}"


def _remark(call: Call) -> str:
    """What is said of how the call ended: its error, or that its result was not seen."""
    return NO_RESULT_SEEN.lower() if call.state == "unseen" else one_line(call.error, 200)


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
