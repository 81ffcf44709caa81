"""Requests for runs, and the queues in which they wait until their session has no live run."""

import asyncio
from collections import deque
from collections.abc import Sequence
from time import perf_counter
from typing import Any, Literal, Self

import msgspec

from limelight.errors import LimelightError, QueueFull
from limelight.ids import sortable_id
from limelight.messages import Message
from limelight.models import SessionRef, User
from limelight.runs.agent_registry import Agent
from limelight.runs.limits import MAX_QUEUED

IfBusy = Literal["error", "cancel", "wait"]
"""What to do with a request whose session has a live run: refuse it, stop that run first, or let the request wait."""


class RunInput(msgspec.Struct, frozen=True, kw_only=True):
    """What a request contains besides messages: an input object, and context values."""

    values: dict[str, Any] | None = None
    """The input object; None if there is none."""
    is_question: bool = False
    """Whether the request has no question of its own, so that the text of the input takes its place."""
    context: dict[str, Any] = {}


NO_INPUT = RunInput()
"""The input of a request that has only messages."""


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """A user's request for a run: who asks which agent what, in which session."""

    agent: Agent
    ref: SessionRef
    user: User
    messages: Sequence[Message]
    input: RunInput = NO_INPUT
    if_busy: IfBusy = "error"
    request_id: str = ""
    continues_session: bool = True
    """Whether a request with one message continues the conversation of its session."""
    max_steps: int | None = None
    """Overrides the step limit of the agent."""
    creates_session: bool = True
    """Whether to create the session if it does not exist; if False, the request is then refused."""
    traceparent: str = ""
    """The `traceparent` header of the client's request, if it sent one."""
    asked_at: float = msgspec.field(default_factory=perf_counter)
    """Time at which the request arrived, on the clock of `perf_counter`."""


class StoppedInQueue(Exception):
    """Raised to a request that was stopped before its run began, so that there is no run and no log."""


class QueuedRun(msgspec.Struct):
    """A request for a run that has not begun, with the id that the run will have. It may wait in a queue."""

    run_id: str
    request: Request
    queued: asyncio.Future[None]
    """A future that is done when the request has to wait."""
    settled: asyncio.Future[None]
    """A future that is done when the run has begun, or is refused or stopped."""
    released: asyncio.Future[None]
    """A future that is done when this object no longer references the messages of the request."""
    woken: asyncio.Future[None] | None = None
    """A future that is done when the request may try again to begin its run; None if it has not waited."""
    stop_reason: str | None = None
    """Why the request was stopped before its run began."""
    refusal: LimelightError | None = None
    """The error because of which the run could not begin."""
    is_identified: bool = False
    """Whether `run_id` is final. Before that, the request may turn out to be a duplicate of an earlier request."""

    @classmethod
    def of(cls, request: Request) -> Self:
        """Return a QueuedRun for a request, with a new run id. Call this on the event loop."""
        future = asyncio.get_running_loop().create_future
        return cls(sortable_id("run_"), request, queued=future(), settled=future(), released=future())

    @property
    def ref(self) -> SessionRef:
        return self.request.ref

    def release_messages(self) -> None:
        """Drop the messages of the request to free memory, and set the future `released`."""
        self.request = msgspec.structs.replace(self.request, messages=(), input=NO_INPUT)
        if not self.released.done():
            self.released.set_result(None)

    def wake(self) -> None:
        """Let a request that waits in the queue try again to begin its run."""
        if self.woken is not None and not self.woken.done():
            self.woken.set_result(None)

    def stop(self, reason: str) -> None:
        """Stop a request before its run begins. `SessionQueues.wait` then raises StoppedInQueue."""
        self.stop_reason = reason
        self.wake()

    def refusal_for_duplicate(self) -> Exception:
        """Return the error for a request that repeats this one, if the run of this one did not begin."""
        return self.refusal or StoppedInQueue(self.stop_reason or "the request before it was refused")


class SessionQueues:
    """For each session, a first-in-first-out queue of requests that wait for the end of its live run."""

    def __init__(self) -> None:
        self._queues: dict[SessionRef, deque[QueuedRun]] = {}

    def __len__(self) -> int:
        return sum(map(len, self._queues.values()))

    def of(self, ref: SessionRef) -> Sequence[QueuedRun]:
        """Return the requests that wait for a session, in order."""
        return self._queues.get(ref, ())

    def find(self, run_id: str) -> QueuedRun | None:
        """Return the waiting request with this run id, or None."""
        return next((queued for queue in self._queues.values() for queued in queue if queued.run_id == run_id), None)

    def find_request(self, ref: SessionRef, request_id: str) -> QueuedRun | None:
        """Return the waiting request with this request id, or None."""
        return next((queued for queued in self.of(ref) if queued.request.request_id == request_id), None)

    async def wait(self, queued: QueuedRun) -> None:
        """Put a request into the queue of its session, and wait until the session may be free.

        A request that was woken, and waits again because the session is still busy, is the first in the queue.
        Raises QueueFull, or StoppedInQueue if the request is stopped.
        """
        queue = self._queues.setdefault(queued.ref, deque())
        if queued.woken is not None:
            queue.appendleft(queued)
        elif len(queue) < MAX_QUEUED:
            queue.append(queued)
        else:
            raise QueueFull(f"{MAX_QUEUED} requests wait for session {queued.ref.session_id} already")
        queued.woken = asyncio.get_running_loop().create_future()
        if not queued.queued.done():
            queued.queued.set_result(None)
        try:
            await queued.woken
        finally:
            queue.remove(queued)
            if not queue:
                self._queues.pop(queued.ref, None)
        if queued.stop_reason is not None:
            raise StoppedInQueue(queued.stop_reason)

    def wake_next(self, ref: SessionRef) -> None:
        """Let the first waiting request of a session try to begin its run, because the session may be free."""
        queue = self._queues.get(ref)
        if queue:
            queue[0].wake()

    def wake_all(self) -> None:
        """Let the waiting requests of all sessions try to begin their runs."""
        for queue in list(self._queues.values()):
            for queued in queue:
                queued.wake()

    def stop_all(self, ref: SessionRef, reason: str) -> None:
        """Stop all requests that wait for a session."""
        for queued in list(self.of(ref)):
            queued.stop(reason)
