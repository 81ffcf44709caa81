"""msgspec's message about a value, in words for people who do not program. Pure."""

import re
from typing import Any, cast

KINDS = {
    "int": "a whole number",
    "float": "a number",
    "str": "a text in quotes",
    "bool": "true or false",
    "array": "a list",
    "object": "a table",
}
LIMITS = {"<=": "of at most", ">=": "of at least"}
TOLD = re.compile(
    r"Expected `(?P<kind>\w+)(?: \| null)?`"
    r"(?: (?P<limit>[<>]=) (?P<bound>[\d.e+-]+))?(?:, got `(?P<got>\w+)`)?"
    r"(?: - at `\$\[(?P<item>\d+)\]`)?"
)
LETTERS = 40
SECRET = object()
"""In place of a value that is nobody's business."""


def told_plainly(message: str, value: Any, *, quotes: bool = True) -> str:
    """What was expected, and what was there. `quotes`: the value stands where texts are in quotes and others not."""
    told = TOLD.match(message)
    if told is None:
        return message[:1].lower() + message[1:]
    kind = KINDS.get(told["kind"], told["kind"])
    expected = kind if quotes else kind.removesuffix(" in quotes")
    limit = f" {LIMITS[told['limit']]} {told['bound'].removesuffix('.0')}" if told["limit"] else ""
    if told["item"] is not None and isinstance(value, list):
        item = cast("list[Any]", value)[int(told["item"])]
        return f"expected {expected}{limit} in the list, got {_shown(item, told['got'])}"
    return f"expected {expected}{limit}, got {_shown(value, told['got'])}"


def _shown(value: Any, kind: str | None) -> str:
    """The value itself if it is short, else what kind of thing it is."""
    match value:
        case bool():
            return "true" if value else "false"
        case int() | float():
            return str(value)
        case str():
            return f'the text "{value if len(value) <= LETTERS else value[:LETTERS] + "…"}"'
        case _:
            return KINDS.get(kind or "", "something else")
