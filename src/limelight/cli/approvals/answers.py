"""What a person may answer to an approval, understood: a word, new arguments as JSON. Pure."""

import json
from collections.abc import Sequence
from typing import Any, Literal

import msgspec

from limelight.events import Decision

Choice = Decision | Literal["show"]


def choice(word: str, decisions: Sequence[Decision]) -> Choice | None:
    """The decision that a word, or its beginning, stands for; None if it is none that is on offer."""
    word = word.strip().lower()
    words: tuple[Choice, ...] = (*decisions, "show")
    return next((one for one in words if word and one.startswith(word)), None)


def json_object(text: str) -> dict[str, Any]:
    """New arguments. Raises ValueError with one line for the person who typed them."""
    try:
        return msgspec.json.decode(text, type=dict[str, Any])
    except (msgspec.DecodeError, UnicodeEncodeError) as error:
        raise ValueError(f"That is no JSON object: {_place(text) or error}") from None


def _place(text: str) -> str:
    """Where the mistake is, in lines and columns; nothing if it is well-formed but something else."""
    try:
        json.loads(text)
    except json.JSONDecodeError as error:
        return f"{error.msg} in line {error.lineno}, column {error.colno}"
    return ""


def as_json(args: dict[str, Any] | str, *, lines: bool = False) -> str:
    """Arguments as a text to edit. What never was an object is left as it is."""
    if isinstance(args, str):
        return args
    text = msgspec.json.encode(args)
    return msgspec.json.format(text, indent=2).decode() + "\n" if lines else text.decode()
