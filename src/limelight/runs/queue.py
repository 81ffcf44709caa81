"""What somebody asks for: a turn, and its place until its run has begun."""

import asyncio
from collections.abc import Sequence
from time import perf_counter
from typing import Literal

import msgspec

from limelight.errors import LimelightError
from limelight.messages import Message
from limelight.models import SessionRef
from limelight.runs.agents import Agent
from limelight.sources.base import User

IfBusy = Literal["error", "cancel", "wait"]
"""What a request wants if its session is at work."""


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """A turn that somebody asks for."""

    agent: Agent
    ref: SessionRef
    user: User
    messages: Sequence[Message]
    if_busy: IfBusy = "error"
    request_id: str = ""
    goes_on: bool = True
    """Whether a request without a past of its own continues the session's conversation."""
    max_steps: int | None = None
    """In place of the agent's own."""
    makes_session: bool = True
    """False: it is refused if its session is gone meanwhile."""
    traceparent: str = ""
    """The client's span, if it has one."""
    asked_at: float = msgspec.field(default_factory=perf_counter)
    """By the clock that durations are measured with."""


class StoppedInQueue(Exception):
    """The request was stopped before its run began: there is no run, and no log of it."""


class Waiting(msgspec.Struct):
    """A request on its way to becoming a run, which may mean waiting until its session is free."""

    run_id: str
    request: Request
    queued: asyncio.Future[None]
    """Done once it has to wait."""
    over: asyncio.Future[None]
    """Done once the run has begun, or never will."""
    let_go: asyncio.Future[None]
    """Done once its messages are kept here no longer."""
    turn: asyncio.Future[None] | None = None
    """Done when it is this one's turn; None while it does not wait."""
    stopped: str | None = None
    """Why it was stopped before it began."""
    refused: LimelightError | None = None
    """Why it could not begin."""
    is_identified: bool = False
    """Whether `run_id` is final. Until then it may turn out that the request was sent before, and has a run."""

    @property
    def ref(self) -> SessionRef:
        return self.request.ref

    def drop_messages(self) -> None:
        """The run has them, or nobody needs them: whoever waits for its end does not keep them until then."""
        self.request = msgspec.structs.replace(self.request, messages=())
        if not self.let_go.done():
            self.let_go.set_result(None)

    def go(self) -> None:
        if self.turn is not None and not self.turn.done():
            self.turn.set_result(None)

    def never_began(self) -> Exception:
        """Why there is no run, for another request that waited for it."""
        return self.refused or StoppedInQueue(self.stopped or "the request before it was refused")

    def stop(self, reason: str) -> None:
        self.stopped = reason
        self.go()
