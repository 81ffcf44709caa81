"""The AsyncAPI document of the socket, generated from the schemas of its messages. `openapi.py` describes HTTP."""

from typing import Any, get_args

import msgspec

from limelight import __version__
from limelight.dialects.v2.message_schema import RunMessage
from limelight.events import Record
from limelight.server.endpoint import Param
from limelight.server.stream_schemas import DeletedRecords
from limelight.server.v2 import replies
from limelight.server.v2.commands import Approve, Cancel, Command, GetMessages, GetState, Ping, Query, Resume
from limelight.server.v2.sessions import MAX_STEPS

PATH = "/api/v2/ws/{session_id}"
TAG = "Web API v2"
CALL = "websockets 'ws://127.0.0.1:8000/api/v2/ws/my-session?agent_type=codact'"
SUMMARY = "Watch a session and talk to its agent"
DESCRIPTION = """\
Connecting creates the session if there is none of this name. First comes `state`, then the events of the live run, \
or everything after `after`; then new events, until you disconnect. Disconnecting stops nothing. Each frame is one \
JSON object as text. Close codes: 1008 refused, with the reason in an `error` before or in the close frame; 1011 the \
same, the session cannot be shown; 1012 the server restarts; 1013 the same as 1008, but only for now: come back after \
the `retry_after` of the `error`; 4404 the session was deleted."""
QUERY = (
    Param("agent_type", "The agent of a new session, one of `GET /agents`; without it codact, or the server's default"),
    Param(
        "max_steps",
        "How many steps a run of a new session may take",
        {"type": "integer", "minimum": 1, "maximum": MAX_STEPS},
    ),
    Param("after", "The `cursor` of the last frame you have: resume after it"),
    Param(
        "format",
        "`v2` for messages, `records` for the records of the log",
        {"type": "string", "enum": ["v2", "records"], "default": "v2"},
    ),
    Param(
        "packed",
        "With `format=records`, `1` for many Records in a frame; a replay has neighbouring deltas joined",
        {"type": "string", "enum": ["0", "1"], "default": "0"},
    ),
)


class SessionRecord(Record, frozen=True, kw_only=True):
    """A Record of the log, sent with `format=records`. A client that reconnects resumes after the last `cursor`."""

    session_id: str
    cursor: str


class PackedRecords(msgspec.Struct, frozen=True, kw_only=True):
    """Several Records of the log, sent with `packed=1`. `cursor` is the cursor of the last Record."""

    session_id: str
    cursor: str
    records: list[Record]


class Gap(msgspec.Struct, kw_only=True, tag_field="type", tag="gap"):
    """A gap in the log: the Records from `from` to `to` were deleted."""

    session_id: str
    cursor: str
    first: int = msgspec.field(name="from")
    last: int = msgspec.field(name="to")


class RecordGap(msgspec.Struct, kw_only=True):
    """A gap in the log, sent with `format=records`: the Records from `from` to `to` were deleted."""

    session_id: str
    cursor: str
    gap: DeletedRecords


LogFrame = RunMessage | SessionRecord | PackedRecords | Gap | RecordGap


class CommandSpec(msgspec.Struct, frozen=True, kw_only=True):
    """The documentation of a command: its schema, examples, and the frames besides `error` that may answer it."""

    schema: type[Command]
    examples: tuple[dict[str, Any], ...]
    replies: tuple[type, ...] = ()

    @property
    def name(self) -> str:
        return name_of(self.schema)


COMMANDS = (
    CommandSpec(
        schema=Query,
        examples=(
            {"type": "query", "query": "What do bees do in winter?"},
            {"type": "query", "query": "And in spring?", "if_busy": "wait", "request_id": "q-2"},
        ),
        replies=(replies.Accepted,),
    ),
    CommandSpec(schema=Ping, examples=({"type": "ping"},), replies=(replies.Pong,)),
    CommandSpec(
        schema=GetMessages,
        examples=({"type": "get_messages", "limit": 100}, {"type": "get_messages", "limit": 20, "before": "57.1"}),
        replies=(RunMessage, SessionRecord, PackedRecords, replies.MessagesEnd),
    ),
    CommandSpec(schema=GetState, examples=({"type": "get_state"},), replies=(replies.State,)),
    CommandSpec(schema=Cancel, examples=({"type": "cancel", "reason": "not needed any more"},)),
    CommandSpec(
        schema=Approve,
        examples=(
            {"type": "approve", "approval_id": "apr_1"},
            {"type": "approve", "approval_id": "apr_1", "decision": "edit", "args": {"path": "notes.md"}},
            {"type": "approve", "approval_id": "apr_1", "decision": "reject", "reason": "not this file"},
            {"type": "approve", "approval_id": "apr_1", "decision": "respond", "answer": "the blue one"},
        ),
        replies=(replies.Decided,),
    ),
    CommandSpec(schema=Resume, examples=({"type": "resume", "after": "57.1"},)),
)
"""All commands that a client can send. Each may also be answered with an error."""
LOG_FRAMES: tuple[type, ...] = get_args(LogFrame)
SERVER_MESSAGES: tuple[type, ...] = (*LOG_FRAMES, *replies.Reply.__subclasses__())
PUSHED_MESSAGES: tuple[type, ...] = (*LOG_FRAMES, replies.State, replies.Error)
"""Frames that the server sends without a command."""
_NAMES: dict[type, str] = {
    RunMessage: "message",
    SessionRecord: "record",
    PackedRecords: "records",
    Gap: "gap",
    RecordGap: "record_gap",
}


def name_of(schema: type) -> str:
    """Return the name of a command or frame in the AsyncAPI document: its `type`, or a fixed name if it has none."""
    return _NAMES.get(schema) or str(schema.__struct_config__.tag)  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType, reportUnknownArgumentType]


def summary(schema: type) -> str:
    """Return the description of a command or frame in the AsyncAPI document: the docstring of its class."""
    return " ".join((schema.__doc__ or "").split())


_CHANNEL = {"$ref": "#/channels/session"}


def asyncapi(root: str = "") -> bytes:
    """Return the AsyncAPI document of the socket as JSON. `root` is the root path of the server."""
    structs = [*(command.schema for command in COMMANDS), *SERVER_MESSAGES]
    refs, schemas = msgspec.json.schema_components(structs, ref_template="#/components/schemas/{name}")
    examples = {command.schema: command.examples for command in COMMANDS}
    messages = {
        name_of(schema): _message(schema, ref, examples.get(schema, ()))
        for schema, ref in zip(structs, refs, strict=True)
    }
    document: dict[str, Any] = {
        "asyncapi": "3.0.0",
        "info": {
            "title": "Limelight: the socket of Web API v2",
            "version": __version__,
            "description": "Where an API key is set, connect with the header `Authorization: Bearer …`.",
        },
        "defaultContentType": "application/json",
        "channels": {"session": _channel(messages, root)},
        "operations": {**{command.name: _command(command) for command in COMMANDS}, "watch": _watch()},
        "components": {
            "messages": messages,
            "schemas": {name: _without_discriminator(schema) for name, schema in schemas.items()},
        },
    }
    return msgspec.json.format(msgspec.json.encode(document), indent=2)


def _message(schema: type, payload: dict[str, Any], examples: tuple[dict[str, Any], ...]) -> dict[str, Any]:
    message: dict[str, Any] = {"name": name_of(schema), "summary": summary(schema), "payload": payload}
    if examples:
        message["examples"] = [{"payload": example} for example in examples]
    return message


def _channel(messages: dict[str, Any], root: str) -> dict[str, Any]:
    query = {param.name: {"description": param.description, **param.schema} for param in QUERY}
    return {
        "address": root + PATH,
        "summary": SUMMARY,
        "description": DESCRIPTION,
        "parameters": {"session_id": {"description": "A name of your choice: 1 to 128 of A-Z a-z 0-9 . _ : -"}},
        "messages": {name: {"$ref": f"#/components/messages/{name}"} for name in messages},
        "bindings": {
            "ws": {
                "method": "GET",
                "query": {"type": "object", "properties": query},
                "headers": {"type": "object", "properties": {"Authorization": {"type": "string"}}},
                "bindingVersion": "0.1.0",
            }
        },
    }


def _command(command: CommandSpec) -> dict[str, Any]:
    """Return the AsyncAPI operation of a command, which the server receives and answers."""
    return {
        "action": "receive",
        "channel": _CHANNEL,
        "summary": summary(command.schema),
        "messages": _refs(command.schema),
        "reply": {"channel": _CHANNEL, "messages": _refs(*command.replies, replies.Error)},
    }


def _watch() -> dict[str, Any]:
    """Return the AsyncAPI operation of the frames that the server sends without a command."""
    text = "The events of the session, and its state."
    return {"action": "send", "channel": _CHANNEL, "summary": text, "messages": _refs(*PUSHED_MESSAGES)}


def _refs(*schemas: type) -> list[dict[str, str]]:
    return [{"$ref": f"#/channels/session/messages/{name_of(schema)}"} for schema in schemas]


def _without_discriminator(schema: Any) -> Any:
    """Return a schema without the key `discriminator`, whose meaning in AsyncAPI differs from OpenAPI."""
    if isinstance(schema, dict):
        return {key: _without_discriminator(value) for key, value in schema.items() if key != "discriminator"}  # pyright: ignore[reportUnknownVariableType]
    return [_without_discriminator(one) for one in schema] if isinstance(schema, list) else schema  # pyright: ignore[reportUnknownVariableType]
