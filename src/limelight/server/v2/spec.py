"""The socket as data: how it is reached, what a client may say on it and what it hears. Documents are made from it."""

from typing import Any, get_args

import msgspec

from limelight.dialects.v2.schema import RunMessage
from limelight.server.endpoint import Param
from limelight.server.v2 import replies
from limelight.server.v2.commands import Approve, Cancel, Command, GetMessages, GetState, Ping, Query, Resume
from limelight.server.v2.frame_schemas import Gap, LogFrame, PackedRecords, RecordGap, SessionRecord
from limelight.server.v2.open_session import MAX_STEPS

PATH = "/api/v2/ws/{session_id}"
TAG = "Web API v2"
CALL = "websockets 'ws://127.0.0.1:8000/api/v2/ws/my-session?agent_type=codact'"
SUMMARY = "Watch a session and talk to its agent"
DESCRIPTION = """\
Connecting makes the session if there is none of this name. First comes `state`, then what the run does that goes on \
now, or all behind `after`; then whatever happens, until you leave. Leaving stops nothing. Each frame is one JSON \
object as text. Close codes: 1008 refused, with the reason in an `error` before or in the close frame; 1011 the same, \
the session cannot be shown; 1012 the server restarts; 1013 the same as 1008, but only for now: come back after the \
`retry_after` of the `error`; 4404 the session was deleted."""
QUERY = (
    Param("agent_type", "The agent of a new session, one of `GET /agents`; without it codact, or the server's default"),
    Param(
        "max_steps",
        "How many steps a run of a new session may take",
        {"type": "integer", "minimum": 1, "maximum": MAX_STEPS},
    ),
    Param("after", "The `cursor` of the last frame you have: go on behind it"),
    Param(
        "format",
        "`v2` for messages, `records` for the log as it is",
        {"type": "string", "enum": ["v2", "records"], "default": "v2"},
    ),
    Param(
        "packed",
        "With `format=records`, `1` for many Records in a frame; who catches up gets neighbouring deltas joined",
        {"type": "string", "enum": ["0", "1"], "default": "0"},
    ),
)


class Said(msgspec.Struct, frozen=True, kw_only=True):
    """One kind of message from a client, and what may answer it."""

    shape: type[Command]
    examples: tuple[dict[str, Any], ...]
    answers: tuple[type, ...] = ()

    @property
    def name(self) -> str:
        return name_of(self.shape)


CLIENT = (
    Said(
        shape=Query,
        examples=(
            {"type": "query", "query": "What do bees do in winter?"},
            {"type": "query", "query": "And in spring?", "if_busy": "wait", "request_id": "q-2"},
        ),
        answers=(replies.Accepted,),
    ),
    Said(shape=Ping, examples=({"type": "ping"},), answers=(replies.Pong,)),
    Said(
        shape=GetMessages,
        examples=({"type": "get_messages", "limit": 100}, {"type": "get_messages", "limit": 20, "before": "57.1"}),
        answers=(RunMessage, SessionRecord, PackedRecords, replies.MessagesEnd),
    ),
    Said(shape=GetState, examples=({"type": "get_state"},), answers=(replies.State,)),
    Said(shape=Cancel, examples=({"type": "cancel", "reason": "not needed any more"},)),
    Said(
        shape=Approve,
        examples=(
            {"type": "approve", "approval_id": "apr_1"},
            {"type": "approve", "approval_id": "apr_1", "decision": "edit", "args": {"path": "notes.md"}},
            {"type": "approve", "approval_id": "apr_1", "decision": "reject", "reason": "not this file"},
        ),
        answers=(replies.Decided,),
    ),
    Said(shape=Resume, examples=({"type": "resume", "after": "57.1"},)),
)
"""What a client may say. Anything may be answered by an error."""

LOG: tuple[type, ...] = get_args(LogFrame)
SERVER: tuple[type, ...] = (*LOG, *replies.Reply.__subclasses__())
"""What a client hears."""
UNASKED: tuple[type, ...] = (*LOG, replies.State, replies.Error)
"""Of this, what comes by itself."""
_NAMES: dict[type, str] = {
    RunMessage: "message",
    SessionRecord: "record",
    PackedRecords: "records",
    Gap: "gap",
    RecordGap: "record_gap",
}


def name_of(shape: type) -> str:
    """How documents call a frame: its `type`, where it has one."""
    return _NAMES.get(shape) or str(shape.__struct_config__.tag)  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType, reportUnknownArgumentType]


def about(shape: type) -> str:
    """What a frame means, from its class."""
    return " ".join((shape.__doc__ or "").split())
