"""The frames of the socket that are not messages of the log: one struct each, distinguished by `type`."""

import logging

import msgspec

from limelight.errors import LimelightError, RequestError, SessionBusy
from limelight.events import Decision
from limelight.ids import sortable_id
from limelight.log_context import log_fields
from limelight.runs.queue import StoppedInQueue
from limelight.server.v2.sessions import SessionInfo

log = logging.getLogger(__name__)


class Reply(msgspec.Struct, kw_only=True, tag_field="type"):
    """A frame that is not in the log: it has no cursor and is not replayed."""


class Pong(Reply, tag="pong"):
    """The answer to `ping`."""


class State(Reply, tag="state"):
    """The session: on connecting, on `get_state`, when a run begins and when it has ended."""

    state: SessionInfo


class Error(Reply, tag="error"):
    """An error of a command. The socket stays open unless a close frame follows.

    `request_id` is that of the query that was refused, `run_id` the run that is in its way, `retry_after` the seconds
    after which a retry may succeed, left out if no time helps.
    """

    message: str
    error_code: str
    request_id: str | msgspec.UnsetType = msgspec.UNSET
    run_id: str | msgspec.UnsetType = msgspec.UNSET
    retry_after: int | msgspec.UnsetType = msgspec.UNSET


class MessagesEnd(Reply, tag="messages_end"):
    """The end of the messages of `get_messages`: how many they were, and whether there are more in that direction."""

    count: int
    more: bool


class Accepted(Reply, tag="accepted"):
    """A query with a `request_id` has this run; the same id again gets the same run."""

    request_id: str
    run_id: str


class Decided(Reply, tag="decided"):
    """The decision on an approval counts."""

    approval_id: str
    decision: Decision


def error_reply(error: Exception, request_id: str = "") -> Error:
    """The frame for an error. Unexpected errors are logged, and the frame has the id of the log entry."""
    reply = Error(message=_message(error), error_code=error.code if isinstance(error, LimelightError) else "internal")
    reply.request_id = request_id or msgspec.UNSET
    if isinstance(error, LimelightError):
        reply.retry_after = error.retry_after or msgspec.UNSET
    if isinstance(error, SessionBusy):
        reply.run_id = error.run_id or msgspec.UNSET
    elif isinstance(error, StoppedInQueue):
        reply.error_code = SessionBusy.code
    return reply


def _message(error: Exception) -> str:
    match error:
        case SessionBusy():
            return "Session is already processing a query"
        case StoppedInQueue():
            return "Query was stopped while it waited"
        case RequestError():
            return error.detail
        case LimelightError():
            return f"Processing error: {error.detail}"
        case _:
            error_id = sortable_id("err_")
            log.error("unexpected error on a socket, %s", error_id, exc_info=error, extra=log_fields(error_id=error_id))
            return f"Processing error: unexpected error; the server's log has the details under {error_id}"
