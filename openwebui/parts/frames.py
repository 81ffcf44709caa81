"""Frames of the typed format, out of the bytes of a stream."""

import contextlib
import json
from collections.abc import AsyncIterator
from typing import NamedTuple

from openwebui.parts.types import Json, as_object, as_text


class Frame(NamedTuple):
    """One frame of the typed format. Types with an underscore are the pipe's own news."""

    type: str
    data: Json
    cursor: str = ""

    def text(self, key: str) -> str:
        """A value as text; "" if it is not there."""
        value = self.data.get(key)
        return "" if value is None else as_text(value)

    def number(self, key: str) -> int:
        value = self.data.get(key)
        return value if isinstance(value, int) else 0


SIGN_OF_LIFE = Frame("_bytes", {})
"""Stands for bytes, whatever they hold: a server that has nothing to tell sends a heartbeat."""


KNOWN = frozenset({"error", "cancelled", "approval"})
"""Types beyond the Deep Agent document that the pipe shows in its own way. The server also sends what they say in
documented types, for clients that do not know them."""


def is_repeated(frame: Frame) -> bool:
    """Whether another frame, of a type that the pipe knows, says the same."""
    return frame.text("fallback_for") in KNOWN


async def frames_of(pieces: AsyncIterator[bytes]) -> AsyncIterator[Frame]:
    """Frames of a server-sent stream, behind a sign of life for each piece of it.

    Lines end at LF alone: other line ends of Unicode may stand inside JSON."""
    rest, cursor = b"", ""
    async for piece in pieces:
        if piece:
            yield SIGN_OF_LIFE
        *lines, rest = (rest + piece).split(b"\n")
        for line in lines:
            if line.startswith(b"id:"):
                cursor = line[3:].strip().decode("ascii", errors="ignore")
            elif line.startswith(b"data:"):
                with contextlib.suppress(ValueError, RecursionError):
                    payload = as_object(json.loads(line[5:]))
                    yield Frame(str(payload.get("type", "")), as_object(payload.get("data")), cursor)


def is_main(frame: Frame) -> bool:
    return not frame.data.get("agent_depth") and not frame.data.get("agent_id")
