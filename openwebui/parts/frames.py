"""Parses the server's event stream, in the format `typed`, into frames, and reads their JSON values."""

import contextlib
import json
from collections.abc import AsyncIterator
from typing import Any, NamedTuple, cast

Json = dict[str, Any]

SHOWN_EXTENSIONS = frozenset({"error", "cancelled", "approval"})
"""Later additions to the frame types that the pipe shows. For clients that do not know them, the server repeats their
content in frames of older types, which the pipe skips (`is_repeated`)."""


def as_text(value: Any) -> str:
    """Return a text unchanged, and any other value as JSON."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def as_object(value: Any) -> Json:
    """Return a JSON object unchanged, and an empty one for any other value."""
    return cast(Json, value) if isinstance(value, dict) else {}


def as_objects(value: Any) -> list[Json]:
    """Return a list with `as_object` applied to each item, and an empty list for any other value."""
    return [as_object(item) for item in cast(list[Any], value)] if isinstance(value, list) else []


class Frame(NamedTuple):
    """A frame of the typed stream. Frames whose type begins with an underscore are created by the pipe."""

    type: str
    data: Json
    cursor: str = ""

    def text(self, key: str) -> str:
        """Return the value of a key as text; "" if it is missing."""
        value = self.data.get(key)
        return "" if value is None else as_text(value)

    def number(self, key: str) -> int:
        """Return the value of a key; 0 if it is missing or not an integer."""
        value = self.data.get(key)
        return value if isinstance(value, int) else 0

    @property
    def is_main_agent(self) -> bool:
        return not self.data.get("agent_depth") and not self.data.get("agent_id")

    @property
    def is_repeated(self) -> bool:
        """Whether this frame only repeats, for older clients, an error, a cancellation or an approval."""
        return self.text("fallback_for") in SHOWN_EXTENSIONS


DATA_RECEIVED = Frame("_data_received", {})
"""Marker that the server has sent bytes, with or without a frame in them. An idle server sends heartbeats."""


async def parse_frames(chunks: AsyncIterator[bytes]) -> AsyncIterator[Frame]:
    """Parse server-sent events into frames, with `DATA_RECEIVED` before the frames of each chunk.

    Only LF ends a line: JSON may contain the other line separators of Unicode."""
    rest, cursor = b"", ""
    async for chunk in chunks:
        if chunk:
            yield DATA_RECEIVED
        *lines, rest = (rest + chunk).split(b"\n")
        for line in lines:
            if line.startswith(b"id:"):
                cursor = line[3:].strip().decode("ascii", errors="ignore")
            elif line.startswith(b"data:"):
                with contextlib.suppress(ValueError, RecursionError):
                    payload = as_object(json.loads(line[5:]))
                    yield Frame(str(payload.get("type", "")), as_object(payload.get("data")), cursor)
