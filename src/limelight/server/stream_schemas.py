"""JSON schemas of the frames of event streams, for the OpenAPI document.

OpenAPI 3.1 cannot describe a stream of events. So the document describes one event: a component with the fields of a
server-sent event, whose `data` is a string with the JSON of a frame. Its `contentSchema` lists the frames of all
formats, and the extension `x-formats` says which frames each format has.
"""

from collections.abc import Callable
from typing import Any

import msgspec

from limelight.dialects.v2.message_schema import StreamedMessage
from limelight.events import Record

EVENT_STREAM = "text/event-stream"
COMPONENT = "ServerSentEvent"


class TypedFrame(msgspec.Struct, kw_only=True):
    """A frame of the format `typed`, with `format=typed` or without a format. `done` has no `data`."""

    type: str
    data: dict[str, Any] | msgspec.UnsetType = msgspec.UNSET


class FlatFrame(msgspec.Struct, kw_only=True):
    """A frame of the format `tool_calls`: further keys depend on the type."""

    type: str


class StreamGap(msgspec.Struct, kw_only=True, tag_field="type", tag="gap"):
    """In the format `v2`: the Records from `from` to `to` were deleted."""

    first: int = msgspec.field(name="from")
    last: int = msgspec.field(name="to")


class DeletedRecords(msgspec.Struct, kw_only=True):
    """The numbers of the first and the last Record of a gap."""

    first: int = msgspec.field(name="from")
    last: int = msgspec.field(name="to")


class StreamRecordGap(msgspec.Struct, kw_only=True):
    """In the format `records`: the Records from `from` to `to` were deleted."""

    gap: DeletedRecords


FRAMES: dict[str, tuple[type, ...]] = {
    "typed": (TypedFrame,),
    "tool_calls": (FlatFrame,),
    "v2": (StreamedMessage, StreamGap),
    "records": (Record, StreamRecordGap),
}
"""The frame types of each built-in format."""
FRAME_TYPES = frozenset(frame for frames in FRAMES.values() for frame in frames)


def event_schema(ref_of: Callable[[type], Any]) -> dict[str, Any]:
    """Return the schema of one server-sent event. `ref_of` returns the reference to the schema of a frame."""
    formats = {name: {"anyOf": [ref_of(frame) for frame in frames]} for name, frames in FRAMES.items()}
    return {
        "title": COMPONENT,
        "description": "One event of a stream. The body is a sequence of such events in the text format of "
        "server-sent events, not JSON. Comments (`: ping`) keep a silent stream open.",
        "type": "object",
        "properties": {
            "id": {"type": "string", "description": "The cursor: send the last one as `Last-Event-ID` to resume"},
            "event": {"type": "string", "description": "Only in the format `tool_calls`, where it is `message`"},
            "retry": {"type": "integer", "description": "Milliseconds before a reconnect; in the first block only"},
            "data": {
                "type": "string",
                "description": "A frame, as JSON in one line. `x-formats` has the schemas by format",
                "contentMediaType": "application/json",
                "contentSchema": {"anyOf": [schema for one in formats.values() for schema in one["anyOf"]]},
                "x-formats": formats,
            },
        },
    }
