"""What the socket shows of a session's log, as types for documents and readers; bytes are what is really sent."""

import msgspec

from limelight.dialects.v2.schema import RunMessage
from limelight.events import Record


class SessionRecord(Record, frozen=True, kw_only=True):
    """With `format=records`: a Record of the log. `cursor` is where a reconnecting client goes on."""

    session_id: str
    cursor: str


class PackedRecords(msgspec.Struct, frozen=True, kw_only=True):
    """With `packed=1`: Records of the log, several at once. `cursor` is the number of the last."""

    session_id: str
    cursor: str
    records: list[Record]


class Gap(msgspec.Struct, kw_only=True, tag_field="type", tag="gap"):
    """The Records from `from` to `to` are no longer kept."""

    session_id: str
    cursor: str
    first: int = msgspec.field(name="from")
    last: int = msgspec.field(name="to")


class Range(msgspec.Struct, kw_only=True):
    """The first and the last number."""

    first: int = msgspec.field(name="from")
    last: int = msgspec.field(name="to")


class RecordGap(msgspec.Struct, kw_only=True):
    """With `format=records`: the Records from `from` to `to` are no longer kept."""

    session_id: str
    cursor: str
    gap: Range


LogFrame = RunMessage | SessionRecord | PackedRecords | Gap | RecordGap
