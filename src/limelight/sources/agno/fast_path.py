"""Events that are nothing but one more piece of text: nine in ten, so it has to be quick to see. Pure.

It knows which fields of an event may say more than its text; what they say, `citations.py` and `files.py` know.
"""

from collections.abc import Callable
from operator import attrgetter
from typing import Any

PIECES = ("RunContent", "TeamRunContent")
"""The names of events that carry pieces of text."""
BESIDE = (
    "reasoning_content",
    "citations",
    "references",
    "images",
    "videos",
    "audio",
    "files",
    "image",
    "response_audio",
)


class PlainTexts:
    """Reads all fields of an event at once: to ask for one after the other costs more than all the rest."""

    def __init__(self) -> None:
        self._readers: dict[type, Callable[[Any], tuple[Any, ...]]] = {}
        """By the class of the event; not all classes have all fields."""

    def of(self, event: object) -> str:
        """Its text, if it has some and nothing else."""
        reader = self._readers.get(type(event))
        if reader is None:
            reader = self._readers[type(event)] = _reader(type(event))
        text, *beside = reader(event)
        return text if type(text) is str and not any(beside) else ""


def _reader(kind: type) -> Callable[[Any], tuple[Any, ...]]:
    beside = [name for name in BESIDE if name in getattr(kind, "__dataclass_fields__", {})]
    if not beside:  # nobody has told us which fields it has, so it may have more than we see
        return lambda _: ("",)
    return attrgetter("content", *beside)
