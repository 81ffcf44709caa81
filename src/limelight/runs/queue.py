"""Requests for runs, and the queues in which they wait until their session has no live run."""

import asyncio
from collections import deque
from collections.abc import Sequence
from time import perf_counter
from typing import Literal, Self

import msgspec

from limelight.errors import LimelightError, QueueFull
from limelight.ids import sortable_id
from limelight.messages import Message
from limelight.models import SessionRef
from limelight.runs.agent_registry import Agent
from limelight.sources.base import User

MAX_QUEUED = 5
"""Maximum number of requests that wait for one session."""

IfBusy = Literal["error", "cancel", "wait"]
"""What happens to a request whose session has a live run: it is refused, it stops that run, or it waits."""


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """A user's request for a turn."""

    agent: Agent
    ref: SessionRef
    user: User
    messages: Sequence[Message]
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
    """Time of the request, on the clock of `perf_counter`."""


class StoppedInQueue(Exception):
    """The request was stopped before its run began. There is no run and no log."""


class QueuedRun(msgspec.Struct):
    """A request with the id that its run will have. It may have to wait until its session is free."""

    run_id: str
    request: Request
    queued: asyncio.Future[None]
    """A future that is done when the request has to wait."""
    settled: asyncio.Future[None]
    """A future that is done when the run has begun, or is refused or stopped."""
    released: asyncio.Future[None]
    """A future that is done when this object no longer references the messages."""
    woken: asyncio.Future[None] | None = None
    """A future that is done when the request may try again; None if the request has not waited."""
    stop_reason: str | None = None
    """Why the request was stopped before its run began."""
    refusal: LimelightError | None = None
    """Why the run could not begin."""
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
        """Drop the messages of the request, to free memory, and report this with `released`."""
        self.request = msgspec.structs.replace(self.request, messages=())
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
        """Return the error for a duplicate of this request, which has waited for its run, if that run did not begin."""
        return self.refusal or StoppedInQueue(self.stop_reason or "the request before it was refused")


class SessionQueues:
    """The queues of all sessions, in which requests wait for the end of a run. Each is first in, first out."""

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
