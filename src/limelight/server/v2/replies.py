"""Frames that the server sends on a socket and that are not in the log, distinguished by their `type`."""

import logging

import msgspec

from limelight.errors import LimelightError, RequestError, SessionBusy
from limelight.events import RequestedDecision
from limelight.ids import sortable_id
from limelight.log_context import log_fields
from limelight.runs.queue import StoppedInQueue
from limelight.server.v2.sessions import SessionInfo

log = logging.getLogger(__name__)


class Reply(msgspec.Struct, kw_only=True, tag_field="type"):
    """A frame that the server sends on a socket and that is not in the log. It has no cursor and is not replayed."""


class Pong(Reply, tag="pong"):
    """The answer to the command `ping`."""


class State(Reply, tag="state"):
    """The state of the session, sent on connecting, in answer to `get_state`, and when a run begins or ends."""

    state: SessionInfo


class Error(Reply, tag="error"):
    """An error of a command or of the socket. The socket stays open unless a close frame follows.

    `request_id` is the id of the refused query. `run_id` is the live run because of which a query was refused.
    `retry_after` is the number of seconds after which a retry may succeed; it is left out if a retry does not help.
    """

    message: str
    error_code: str
    request_id: str | msgspec.UnsetType = msgspec.UNSET
    run_id: str | msgspec.UnsetType = msgspec.UNSET
    retry_after: int | msgspec.UnsetType = msgspec.UNSET


class MessagesEnd(Reply, tag="messages_end"):
    """The end of the answer to `get_messages`: the `count` of messages sent, and whether `more` exist beyond them."""

    count: int
    more: bool


class Accepted(Reply, tag="accepted"):
    """The answer to a query with a `request_id`: the id of its run. A repeated query with this id gets the same run."""

    request_id: str
    run_id: str


class Decided(Reply, tag="decided"):
    """The answer to `approve`: the decision on the approval was accepted."""

    approval_id: str
    decision: RequestedDecision


def error_reply(error: Exception, request_id: str = "") -> Error:
    """Return the `error` frame for an exception. An unexpected one is logged, with an id that is also in the frame."""
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
