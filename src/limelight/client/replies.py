"""What a session's socket says, read: one JSON text in, one value out. Pure.

Frames that are numbered are in the log; the others answer a command or tell the session's state. Kinds of frames that
a newer server may have are no error. It must not know what is done about them; `Socket` is the caller.
"""

from typing import Any, NamedTuple

import msgspec

from limelight.client.errors import ClientError
from limelight.client.models import Gap, Message, State
from limelight.events import Record


class Shown(NamedTuple):
    """Something of the log, and its place there."""

    cursor: str
    item: Message | Record | Gap


class Pong(msgspec.Struct, tag="pong", tag_field="type"):
    """Everything that was said before the ping is answered, or waits for its turn."""


class Told(msgspec.Struct, tag="state", tag_field="type"):
    """The session, on connecting and at the edges of runs."""

    state: State


class Refused(msgspec.Struct, tag="error", tag_field="type"):
    """A command was wrong; of a question that waited for its turn it has the `request_id`."""

    message: str = ""
    error_code: str = ""
    request_id: str = ""
    run_id: str = ""
    retry_after: int = 0


class Accepted(msgspec.Struct, tag="accepted", tag_field="type"):
    """A question has become a run."""

    request_id: str
    run_id: str


class Decided(msgspec.Struct, tag="decided", tag_field="type"):
    """A decision counts."""

    decision: str


Reply = Pong | Told | Refused | Accepted | Decided


class _Range(msgspec.Struct):
    first: int = msgspec.field(name="from")
    last: int = msgspec.field(name="to")


class _Head(msgspec.Struct):
    """As much as it takes to know what a frame is."""

    type: str = ""
    cursor: str = ""
    seq: int = 0
    gap: _Range | None = None


_REPLIES: dict[str, type[Any]] = {
    "pong": Pong,
    "state": Told,
    "error": Refused,
    "accepted": Accepted,
    "decided": Decided,
}


def heard(text: str | bytes) -> Shown | Reply | None:
    """None for what this version does not know and need not know."""
    try:
        head = msgspec.json.decode(text, type=_Head)
        if head.type in _REPLIES:
            return msgspec.json.decode(text, type=_REPLIES[head.type])
        gap = msgspec.json.decode(text, type=_Range) if head.type == "gap" else head.gap
        if gap is not None:
            return Shown(head.cursor or str(gap.last), Gap(gap.first, gap.last))
        if head.type or not head.cursor:
            return None
        return Shown(head.cursor, msgspec.json.decode(text, type=Record if head.seq else Message))
    except msgspec.DecodeError as error:
        raise ClientError(
            f"the server sent what this version does not understand ({error}): is the client older?", code="bad_record"
        ) from error
