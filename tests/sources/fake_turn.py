"""A turn and a context for sources, without an engine."""

from collections.abc import Coroutine
from pathlib import Path
from typing import Any, Unpack

from limelight.events import AnyEvent
from limelight.messages import Message
from limelight.models import User
from limelight.sources.base import Approval, ApprovalOptions, Turn


class FakeContext:
    """A context that approves everything and records events."""

    run_id = "run_1"
    session_id = "session_1"
    user = User("ada", "Ada")
    workspace = Path("workspace")
    cancelled = False

    def __init__(self) -> None:
        self.emitted: list[AnyEvent] = []

    def emit(self, event: AnyEvent) -> None:
        self.emitted.append(event)

    async def approve(self, name: str, args: dict[str, Any], **about: Unpack[ApprovalOptions]) -> Approval:
        return Approval("approve", args)

    def approve_blocking(self, name: str, args: dict[str, Any], **about: Unpack[ApprovalOptions]) -> Approval:
        return Approval("approve", args)

    async def together(self, *asking: Coroutine[Any, Any, Approval]) -> list[Approval]:
        return [await answer for answer in asking]


def new_turn(*texts: str) -> Turn:
    return Turn(messages=[Message(role="user", content=text) for text in texts or ("hi",)], context=FakeContext())
