"""Reports that an agent's threads send to the translator, and the Observer that sends them.

Reports carry objects of smolagents unchanged (`Any`). `agent_id` is the agent that has sent the report; "" is the main
agent. `call_number` identifies a tool call within a run, because models repeat call ids; 0 means no call.
"""

import itertools
from collections import Counter
from collections.abc import Collection, Generator, Iterable
from concurrent.futures import Future
from contextlib import contextmanager
from contextvars import ContextVar
from threading import Lock
from typing import Any, cast

import msgspec

from limelight.json_values import safe_text
from limelight.sources.base import Approval, FileMade
from limelight.sources.image_budget import ImageLease, separate_lease
from limelight.sources.thread_bridge import ThreadBridge, ThreadCancelled
from limelight.sources.tool_results import ToolResult

NO_RESULT = ToolResult("", [])
CODE = "python_interpreter"
"""The name under which smolagents reports a code execution as a tool call."""
ANSWER = "final_answer"
"""smolagents' name of the tool that gives the final answer."""
ARGUMENTS = "arguments"
"""Name under which an approval request shows arguments that are not an object."""
POLL_SECONDS = 0.5
"""Interval at which a thread that waits for an approval checks whether the run was stopped."""
WRAPPERS = {"AgentGenerationError", "AgentToolExecutionError"}
"""Names of smolagents' errors that only wrap another error and add advice for the model."""
CURRENT_CALL: ContextVar[int] = ContextVar("limelight_smolagents_call", default=0)
"""The number of the tool call to which the current code belongs, unique in the run."""


class Report(msgspec.Struct, frozen=True, gc=False):
    """Base class of the reports. Each says one thing that an agent did."""

    agent_id: str


class AgentBegan(Report, frozen=True, gc=False):
    """Report: an agent has started, the main agent for the user or a managed agent for a tool call."""

    name: str = ""
    parent_id: str = ""
    call_number: int = 0
    tags: tuple[str, str] | None = None
    """The tags around a code agent's code; None for an agent that writes no code."""
    structured: bool = False
    """Whether a code agent replies with a JSON object of thought and code instead of using tags."""
    answer_key: str = ""
    """The argument of `final_answer` whose value is the answer; "" if the tool may return something else."""


class AgentEnded(Report, frozen=True, gc=False):
    """Report: a managed agent has returned or failed."""

    error: str | None = None


class StepBegan(Report, frozen=True, gc=False):
    """Report: a step of the kind `action` or `planning` has started."""

    number: int
    step_kind: str = "action"


class StepFailed(Report, frozen=True, gc=False):
    """Report: a step has raised an error, which smolagents does not always record in the step."""

    error: str


class StepLimitReached(Report, frozen=True, gc=False):
    """Report: the agent has used all its steps, so the next reply of the model is the answer."""


class ModelDelta(Report, frozen=True, gc=False):
    """Report: a delta of a reply that the model is streaming."""

    delta: Any


class ModelReplied(Report, frozen=True, gc=False):
    """Report: a reply of the model is complete. Without ModelDelta reports before, it was not streamed."""

    message: Any
    model: str = ""
    streamed: bool = True


class CallReady(Report, frozen=True, gc=False):
    """Report: the arguments of a tool call are complete. The call is `inner` if code makes it, not the model."""

    call_number: int
    name: str
    args: Any = None
    raw_id: str = ""
    inner: bool = False


class CallOutput(Report, frozen=True, gc=False):
    """Report: running code has printed text."""

    call_number: int
    text: str


class CallEnded(Report, frozen=True, gc=False):
    """Report: a tool or a code execution has returned or raised an error."""

    call_number: int
    result: ToolResult = NO_RESULT
    error: str | None = None
    seconds: float | None = None


class ApprovalNeeded(Report, frozen=True):
    """Report: a tool call waits for a person's approval."""

    call_number: int
    name: str
    args: dict[str, Any]
    approval: "Future[Approval]" = msgspec.field(default_factory=Future)


class ImagesObserved(Report, frozen=True, gc=False):
    """Report: the observations of a step contain images, such as a screenshot."""

    files: list[FileMade]


class StepEnded(Report, frozen=True, gc=False):
    """Report: an ActionStep has ended. At the step limit, smolagents reports the last one twice."""

    step: Any


class PlanEnded(Report, frozen=True, gc=False):
    """Report: a PlanningStep has ended."""

    step: Any


class AnswerAccepted(Report, frozen=True, gc=False):
    """Report: smolagents has accepted the agent's answer."""

    result: ToolResult


class ApprovalRejected(Exception):
    """Raised if a person has rejected a call, or its approval request has expired. The model gets the message."""

    def __init__(self, approval: Approval) -> None:
        reason = f": {approval.reason}" if approval.reason else ""
        super().__init__(f"rejected by {approval.by or 'a person'}{reason}")


class Observer:
    """Sends the reports of one run. It also assigns ids and requests approvals.

    The agent's thread uses it, and so do threads that smolagents starts for parallel tools. Once the run is stopped,
    sending a report raises ThreadCancelled, which ends the thread.
    """

    def __init__(
        self, bridge: ThreadBridge[Report], approve: Collection[str] = (), images: ImageLease | None = None
    ) -> None:
        """Create the observer of a run; `approve` contains the names of the tools that need an approval.

        `images` are the pixels of the images that the run has decoded.
        """
        self.image_lease = separate_lease() if images is None else images
        self.emit = bridge.put
        """Sends a report. Raises ThreadCancelled if the run was stopped."""
        self._bridge = bridge
        self._call_numbers = itertools.count(1)
        self._agents: Counter[str] = Counter()
        self._lock = Lock()
        self._images: dict[int, Any] = {}
        self._running: Counter[str] = Counter()
        self._approve = frozenset(approve)

    @property
    def cancelled(self) -> bool:
        """True once the run was stopped."""
        return self._bridge.cancelled

    def check_cancelled(self) -> None:
        """Raise ThreadCancelled if the run was stopped. Must be called before anything that costs time or money."""
        if self._bridge.cancelled:
            raise ThreadCancelled

    def next_call_number(self) -> int:
        return next(self._call_numbers)

    def new_agent_id(self, name: str) -> str:
        """Assign an id to a managed agent, such as `helper-1`."""
        with self._lock:
            self._agents[name] += 1
            return f"{name}-{self._agents[name]}"

    def new_images(self, images: Iterable[Any]) -> list[Any]:
        """Return the images that were not passed to this method before.

        All images are stored, so that their `id()` is not reused.
        """
        new = {id(image): image for image in images if id(image) not in self._images}
        self._images |= new
        return list(new.values())

    def release_images(self) -> None:
        """Forget all images, at the end of the run."""
        self._images.clear()
        self.image_lease.close()

    # Approvals

    def needs_approval(self, tools: Collection[str]) -> bool:
        """Whether one of these tools may only run after an approval."""
        return not self._approve.isdisjoint(tools)

    def approved_args(self, agent_id: str, call_number: int, tool: str, args: Any) -> Any:
        """Return the arguments with which a tool may run, after an approval if needed. Raises ApprovalRejected."""
        if tool not in self._approve:
            return args
        is_object = isinstance(args, dict)
        shown = cast("dict[str, Any]", args) if is_object else {ARGUMENTS: args}
        request = ApprovalNeeded(agent_id, call_number, tool, shown)
        self.emit(request)
        approval = self._wait(request)
        if not approval:
            raise ApprovalRejected(approval)
        if approval.decision != "edit":
            return args
        return approval.args if is_object else approval.args.get(ARGUMENTS, args)

    def _wait(self, request: ApprovalNeeded) -> Approval:
        """Wait for the decision about an approval request. Raises ThreadCancelled if the run was stopped.

        The run is polled, because a request that was still in the bridge at the stop gets no decision.
        """
        while True:
            try:
                return request.approval.result(timeout=POLL_SECONDS)
            except TimeoutError:
                self.check_cancelled()

    # Running tools

    @contextmanager
    def running(self, tool: str, caller: str = "") -> Generator[None]:
        """Count a tool as running in a context manager.

        Its `caller`, such as code, waits for it and is not counted.
        """
        with self._lock:
            self._running.update({tool: 1, caller: -1})
        try:
            yield
        finally:
            with self._lock:
                self._running.update({tool: -1, caller: 1})

    @property
    def running_tools(self) -> list[str]:
        with self._lock:
            return [tool for tool in +self._running if tool]


def error_text(error: BaseException) -> str:
    """Return the message of an error, without the advice for the model that smolagents adds."""
    cause = error.__cause__
    if type(error).__name__ in WRAPPERS and cause is not None:
        return error_text(cause) if type(cause).__name__ in WRAPPERS else f"{type(cause).__name__}: {safe_text(cause)}"
    message = getattr(error, "message", None)
    text = message if isinstance(message, str) and message else safe_text(error)
    if not isinstance(error, Exception):  # an exit needs its name, as in `SystemExit: 1`
        text = f"{type(error).__name__}: {text}" if text else ""
    return text or type(error).__name__


def named_error_text(error: BaseException) -> str:
    """Return the message of an error with the name of the error, as in `KeyError: 'size'`."""
    lacks_name = isinstance(error, Exception) and type(error).__name__ not in {*WRAPPERS, "ApprovalRejected"}
    return f"{type(error).__name__}: {error_text(error)}" if lacks_name else error_text(error)
