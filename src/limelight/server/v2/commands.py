"""What a client may say on the socket, and what is wrong with what it said. Pure."""

from typing import Any, cast, get_args

import msgspec

from limelight.errors import BadJson, BadRequest, BodyTooLarge, InvalidBody, UnknownMessageType
from limelight.events import Decision
from limelight.runs.queue import IfBusy
from limelight.server.endpoint import shaped
from limelight.server.request_schemas import MAX_REQUEST_ID


class Command(msgspec.Struct, kw_only=True, tag_field="type"):
    """One message from the client. Keys that are not named here are ignored."""


class Query(Command, tag="query"):
    """Ask the agent. `if_busy`: refuse it, stop what runs, or wait for its turn."""

    query: str
    if_busy: IfBusy = "error"
    request_id: str = ""


class Ping(Command, tag="ping"):
    """Answered with `pong`."""


class GetMessages(Command, tag="get_messages"):
    """The newest messages, or those before or after a cursor; then `messages_end`. Without a `limit` 100 at most."""

    limit: int | msgspec.UnsetType = msgspec.UNSET
    before: str | int | None = None
    after: str | int | None = None


class GetState(Command, tag="get_state"):
    """Answered with `state`."""


class Cancel(Command, tag="cancel"):
    """Stop the run, or the query of that `request_id`, also while it waits for its turn."""

    reason: str = ""
    request_id: str = ""


class Approve(Command, tag="approve"):
    """Answer what the agent asks: approve, edit with new `args`, or reject with a `reason`."""

    approval_id: str
    decision: Decision = "approve"
    args: dict[str, Any] | None = None
    reason: str = ""


class Resume(Command, tag="resume"):
    """Go on behind this cursor."""

    after: str | int


AnyCommand = Query | Ping | GetMessages | GetState | Cancel | Approve | Resume
COMMANDS: dict[str, type[AnyCommand]] = {
    str(command.__struct_config__.tag): command for command in get_args(AnyCommand)
}
FREE = (Ping, Cancel)
"""Not counted as requests: a sign of life, and what lets a run end, get through whatever limit somebody is at. So does
the answer to an open question, which `answering` looks for."""

ALLOWED = {"if_busy": "if_busy is error, cancel or wait", "decision": "decision is approve, edit or reject"}


def parse(text: str | None, limit: int) -> AnyCommand:
    """A text frame as a command; None stands for a binary one. Raises what the client is told."""
    if text is None:
        raise BadRequest("Binary frames are not understood: send JSON as text")
    if len(text) > limit or len(text.encode("utf-8", "replace")) > limit:
        raise BodyTooLarge(f"Message is larger than {limit} bytes")
    try:
        value = msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        raise BadJson("Invalid JSON") from error
    if not isinstance(value, dict):
        raise BadRequest('Message must be a JSON object like {"type": "ping"}')
    command = cast("dict[str, Any]", value)
    kind = command.get("type")
    if not isinstance(kind, str) or kind not in COMMANDS:
        raise UnknownMessageType(f"Unknown message type: {str(kind)[:100]}")
    return _checked(command, kind)


def _checked(value: dict[str, Any], kind: str) -> AnyCommand:
    if kind == "query" and not (isinstance(value.get("query"), str) and value["query"].strip()):
        raise InvalidBody("Query is required", path="query")
    try:
        command = shaped(value, COMMANDS[kind])
    except InvalidBody as error:
        field = error.errors[0][0] if error.errors else ""
        text = ALLOWED.get(field) if "enum" in error.detail else f"{field}: {error.detail}"
        raise InvalidBody(text or error.detail, path=field) from error
    if isinstance(command, Query) and len(command.request_id) > MAX_REQUEST_ID:
        raise InvalidBody(f"a request_id has at most {MAX_REQUEST_ID} characters", path="request_id")
    if isinstance(command, Approve) and command.decision == "edit" and command.args is None:
        raise InvalidBody("to edit, send the new args", path="args")
    return command
