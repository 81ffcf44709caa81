"""Frames of the server's typed stream, and the JSON values in them."""

import contextlib
import json
from collections.abc import AsyncIterator
from typing import Any, NamedTuple, cast

Json = dict[str, Any]

SHOWN_EXTENSIONS = frozenset({"error", "cancelled", "approval"})
"""Types beyond the Deep Agent document that the pipe shows. The server repeats their content in documented types, for
clients that do not know them."""


def as_text(value: Any) -> str:
    """A text unchanged, any other value as JSON."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def as_object(value: Any) -> Json:
    """A JSON object unchanged; an empty one in place of any other value."""
    return cast(Json, value) if isinstance(value, dict) else {}


def as_objects(value: Any) -> list[Json]:
    """A list of JSON objects; an empty list in place of any other value."""
    return [as_object(item) for item in cast(list[Any], value)] if isinstance(value, list) else []


class Frame(NamedTuple):
    """One frame of the typed stream. Types that begin with an underscore are created by the pipe."""

    type: str
    data: Json
    cursor: str = ""

    def text(self, key: str) -> str:
        """A value as text; "" if it is missing."""
        value = self.data.get(key)
        return "" if value is None else as_text(value)

    def number(self, key: str) -> int:
        """An integer; 0 if it is missing."""
        value = self.data.get(key)
        return value if isinstance(value, int) else 0

    @property
    def is_main_agent(self) -> bool:
        return not self.data.get("agent_depth") and not self.data.get("agent_id")

    @property
    def is_repeated(self) -> bool:
        """Whether a frame of a type in `SHOWN_EXTENSIONS` has the same content."""
        return self.text("fallback_for") in SHOWN_EXTENSIONS


DATA_RECEIVED = Frame("_data_received", {})
"""Marks bytes from the server, with or without a frame in them: an idle server sends heartbeats."""


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
