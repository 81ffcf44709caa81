"""What the dialect v2 makes of a run, and ways to look at it, for its tests."""

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


def after_the_question(*events: AnyEvent, **started: Any) -> list[dict[str, Any]]:
    return messages_of([RunStarted(agent="a", input="go", **started), *events])[1:]


def types(messages: list[dict[str, Any]]) -> list[str]:
    return [message["metadata"]["message_type"] for message in messages]


def whole(messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The messages that are listed and counted."""
    return [message for message in messages if not message["metadata"].get("streaming")]


def only(messages: list[dict[str, Any]], message_type: str) -> dict[str, Any]:
    (found,) = [message for message in whole(messages) if message["metadata"]["message_type"] == message_type]
    return found


def said(text: str, message_id: str = "m") -> list[AnyEvent]:
    return [TextDelta(message_id=message_id, text=text), TextFinished(message_id=message_id)]


# What holds for all of them
