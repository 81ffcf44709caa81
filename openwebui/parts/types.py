"""What all parts speak of: JSON, chunks for Open WebUI, and the two ways to reach a person."""

import json
from collections.abc import Awaitable, Callable
from typing import Any, cast

Json = dict[str, Any]
Chunk = Json | str
Emit = Callable[[Json], Awaitable[None]]
Ask = Callable[[Json], Awaitable[Any]]


def as_text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def text_of(content: Any) -> str:
    """What a message says, without its images; its content is a text or a list of parts."""
    parts = [part.get("text") for part in as_objects(content)] if isinstance(content, list) else [content]
    return "\n".join(part for part in parts if isinstance(part, str))


def as_object(value: Any) -> Json:
    """A JSON object, or an empty one in place of anything else: what comes from outside may be anything."""
    return cast(Json, value) if isinstance(value, dict) else {}


def as_objects(value: Any) -> list[Json]:
    """The objects of a list."""
    return [as_object(item) for item in cast(list[Any], value)] if isinstance(value, list) else []
