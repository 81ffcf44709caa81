"""What the socket says besides messages: one small struct each, told apart by `type`."""

import msgspec

from limelight.events import Decision
from limelight.server.v2.session_info import SessionInfo


class Reply(msgspec.Struct, kw_only=True, tag_field="type"):
    """A frame that is no message: not numbered, not replayed."""


class Pong(Reply, tag="pong"):
    """The answer to `ping`."""


class State(Reply, tag="state"):
    """The session: on connecting, on `get_state`, when a run begins and when it has ended."""

    state: SessionInfo


class Error(Reply, tag="error"):
    """What was wrong with a message from the client. The socket stays open unless it is closed right behind it.

    `request_id` is that of the query that was refused, `run_id` the run that is in its way, `retry_after` in how many
    seconds it is worth trying again, left out if no time helps.
    """

    message: str
    error_code: str
    request_id: str | msgspec.UnsetType = msgspec.UNSET
    run_id: str | msgspec.UnsetType = msgspec.UNSET
    retry_after: int | msgspec.UnsetType = msgspec.UNSET


class MessagesEnd(Reply, tag="messages_end"):
    """Behind the messages of `get_messages`: how many they were, and whether there are more on the way asked for."""

    count: int
    more: bool


class Accepted(Reply, tag="accepted"):
    """A query with a `request_id` has this run; the same id again gets the same run."""

    request_id: str
    run_id: str


class Decided(Reply, tag="decided"):
    """The answer to an approval counts."""

    approval_id: str
    decision: Decision
