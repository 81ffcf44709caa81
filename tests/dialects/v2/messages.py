"""Runs as messages of the v2 dialect, and filters for them."""

from collections.abc import Iterable
from typing import Any

import msgspec

from limelight.dialects.v2 import V2Dialect
from limelight.events import (
    AnyEvent,
    RunStarted,
    TextDelta,
    TextFinished,
)
from tests.dialects.transcripts import live
from tests.support.strategies import as_records


def messages_of(run: Iterable[AnyEvent]) -> list[dict[str, Any]]:
    return [msgspec.json.decode(frame.data) for frame in live(V2Dialect, as_records(list(run)))]


def messages_after_input(*events: AnyEvent, **started: Any) -> list[dict[str, Any]]:
    """Return the messages of a run without the first one, which is the user's input."""
    return messages_of([RunStarted(agent="a", input="go", **started), *events])[1:]


def types(messages: list[dict[str, Any]]) -> list[str]:
    return [message["metadata"]["message_type"] for message in messages]


def complete(messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the messages that are not increments."""
    return [message for message in messages if not message["metadata"].get("streaming")]


def single(messages: list[dict[str, Any]], message_type: str) -> dict[str, Any]:
    """Return the only complete message of a type."""
    (found,) = [message for message in complete(messages) if message["metadata"]["message_type"] == message_type]
    return found


def text_events(text: str, message_id: str = "m") -> list[AnyEvent]:
    return [TextDelta(message_id=message_id, text=text), TextFinished(message_id=message_id)]
