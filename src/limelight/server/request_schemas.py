"""What requests carry. Keys that are not named here are ignored: Open WebUI sends its whole body along."""

from typing import Any

import msgspec

from limelight.events import Decision
from limelight.messages import Role
from limelight.runs.queue import IfBusy

MAX_REQUEST_ID = 200
MAX_REASON = 500
"""Characters of a reason that are kept."""


class MessageBody(msgspec.Struct, kw_only=True):
    """One message: OpenAI's shape. Further keys (`tool_calls`, `name`, …) are passed on to the agent."""

    role: Role
    content: str | list[dict[str, Any] | str] | None = None


class ChatBody(msgspec.Struct, kw_only=True):
    """One turn."""

    messages: list[MessageBody]
    agent: str | None = None
    model: Any = None
    session_id: str | None = None
    chat_id: str | None = None
    user_id: str | None = None
    if_busy: IfBusy = "error"
    request_id: str | None = None
    stream: bool | None = None


class TitleBody(msgspec.Struct, kw_only=True):
    """A new title."""

    title: str


class CancelBody(msgspec.Struct, kw_only=True):
    """Why a run is stopped."""

    reason: str = ""


class DecisionBody(msgspec.Struct, kw_only=True):
    """A person's word on an approval; `args` are the new ones for `edit`."""

    decision: Decision
    args: dict[str, Any] | None = None
    reason: str = ""
