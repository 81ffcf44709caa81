"""Runs a turn with a clone of an agent that behaves like the agent and reports each thing that it does.

The clone shares memory, state and executor with the agent of the conversation; only the observed attributes are
replaced. Some of the replaced methods are private methods of smolagents, so the extra pins the version. Reports are
emitted only inside of a step or between two steps, because ThreadCancelled has to propagate out of `_run_stream`.
"""

# pyright: reportMissingTypeStubs=false

import asyncio
import copy
import inspect
from collections.abc import Coroutine, Generator, Iterator, Sequence
from contextlib import contextmanager
from functools import partial, wraps
from threading import Lock
from typing import Any, cast

from smolagents.default_tools import FinalAnswerTool

from limelight.events import Status
from limelight.messages import Message
from limelight.sources.base import CURRENT_AGENT_ID, Options, Turn
from limelight.sources.smolagents.conversation import Conversation, clean_up, copy_agent
from limelight.sources.smolagents.executor import ObservedCall, ObservedExecutor
from limelight.sources.smolagents.files import result_of, sent_files
from limelight.sources.smolagents.memory import admit_images, release_inputs
from limelight.sources.smolagents.model_wrapper import observed_model
from limelight.sources.smolagents.reports import (
    ANSWER,
    CODE,
    CURRENT_CALL,
    AgentBegan,
    AgentEnded,
    AnswerAccepted,
    ApprovalRejected,
    CallEnded,
    CallReady,
    ImagesObserved,
    Observer,
    PlanEnded,
    StepBegan,
    StepEnded,
    StepFailed,
    StepLimitReached,
    error_text,
)
from limelight.sources.thread_bridge import ThreadBridge, ThreadCancelled

REPLACED = frozenset(
    {
        "model",
        "tools",
        "managed_agents",
        "python_executor",
        "stream_outputs",
        "instructions",
        "planning_interval",
        "_run_stream",
        "_step_stream",
        "_generate_planning_step",
        "_handle_max_steps_reached",
        "execute_tool_call",
    }
)
"""Attributes of a clone that are replaced to observe it, and so are not copied back to the agent."""
OBSERVED = frozenset({"ToolCall", "ToolOutput", "ActionStep", "PlanningStep", "FinalAnswerStep"})
"""Classes of smolagents' stream items that are passed on as reports."""
DROPS = {
    "ActionOutput": "the end of the call, the step and the answer say the same",
    "ChatMessageStreamDelta": "the model is observed directly, so the agent's own streaming is off",
    "ChatMessageToolCall": "smolagents names it among its events and never sends it",
}
"""Classes of smolagents' stream items that are ignored, each with the reason."""
ANSWER_KEY = "answer"
"""Name of the argument that smolagents' own tool `final_answer` returns unchanged."""
POLL_SECONDS = 0.05
"""Interval at which a running coroutine of a tool is checked for a cancellation."""


class AgentTurn:
    """One turn of an agent, in its own thread. It continues `conversation`, or creates one if that is None."""

    def __init__(
        self,
        target: Any,
        options: Options,
        turn: Turn,
        conversation: Conversation | None,
        history: Sequence[Message],
    ) -> None:
        self.conversation = conversation
        self._target = target
        self._options = options
        self._turn = turn
        self._history = history
        self._observer: Observer | None = None

    @property
    def running_tools(self) -> list[str]:
        return self._observer.running_tools if self._observer is not None else []

    def run(self, bridge: ThreadBridge[Any]) -> None:
        """Run the agent's turn to its end. Must be called in the thread of the turn."""
        observer = self._observer = Observer(bridge, self._options.approve, self._turn.images)
        try:
            self._run(observer)
        finally:
            observer.release_images()

    def _run(self, observer: Observer) -> None:
        images = self._images(observer)  # before those of earlier turns, which are left out if there are too many
        agent = self._agent()
        clone = self._configure(instrument(agent, observer))
        observer.emit(agent_began(clone))
        steps = clone.run(
            self._turn.question.text,
            stream=True,
            reset=False,
            images=images or None,
            max_steps=self._turn.max_steps or self._options.max_steps,
        )
        for _ in steps:  # the instrumented methods emit the reports
            pass
        copy_back(clone, agent)

    def _agent(self) -> Any:
        """Return the agent of the conversation, with its memory of earlier turns."""
        if self.conversation is None:
            self.conversation = Conversation(
                self._target, self._turn.images, self._history, sandbox=self._options.sandbox
            )
            return self.conversation.agent()
        agent = self.conversation.agent()
        if removed := admit_images(agent, self._turn.images):
            text = f"The pictures of this conversation are too large together: the first {removed} of them are left out"
            self._turn.context.emit(Status(text=text))
        return agent

    def _images(self, observer: Observer) -> list[Any]:
        images, others = sent_files(self._turn.question, self._turn.images)
        if others:
            text = f"Left out, as this agent takes only pictures that are not too large: {', '.join(others)}"
            self._turn.context.emit(Status(text=text))
        return observer.new_images(images)

    def _configure(self, clone: Any) -> Any:
        """Apply the request's instructions and the agent's options to the clone."""
        if self._turn.instructions:
            clone.instructions = "\n\n".join(filter(None, (clone.instructions, self._turn.instructions)))
        if self._options.planning_interval is not None:
            clone.planning_interval = self._options.planning_interval
        return clone


def instrument(agent: Any, observer: Observer, agent_id: str = "") -> Any:
    """Return a clone of an agent that reports each thing that it does."""
    clone = copy.copy(agent)
    clone.model = observed_model(agent.model, observer, agent_id, keep_empty=agent.stream_outputs)
    clone.stream_outputs = False
    clone.tools = {name: _sync_tool(tool, observer) for name, tool in agent.tools.items()}
    clone.managed_agents = {
        name: ManagedAgent(managed, observer, agent_id) for name, managed in agent.managed_agents.items()
    }
    ObservedMethods(clone, observer, agent_id)
    return clone


def copy_back(clone: Any, agent: Any) -> None:
    """Copy the attributes that a turn may have changed from the clone to the agent."""
    attributes = cast("dict[str, Any]", vars(clone))
    for name, value in attributes.items():
        if name not in REPLACED:
            setattr(agent, name, value)


class ObservedMethods:
    """Methods that replace those of a clone: they call the original methods and emit reports."""

    def __init__(self, clone: Any, observer: Observer, agent_id: str) -> None:
        self._observer = observer
        self._agent_id = agent_id
        self._calls = StepCalls(observer)
        self._memory = clone.memory
        self._run_stream = clone._run_stream
        self._step_stream = clone._step_stream
        self._plan_stream = clone._generate_planning_step
        self._answer = clone._handle_max_steps_reached
        clone._run_stream = self.run_stream
        clone._step_stream = self.step_stream
        clone._generate_planning_step = self.plan_stream
        clone._handle_max_steps_reached = self.answer
        if hasattr(clone, "execute_tool_call"):
            self._execute = clone.execute_tool_call
            clone.execute_tool_call = self.execute
        if getattr(clone, "python_executor", None) is not None:
            clone.python_executor = ObservedExecutor(clone.python_executor, observer, agent_id, self._start_code)

    def run_stream(self, *args: Any, **kwargs: Any) -> Iterator[Any]:
        for item in self._run_stream(*args, **kwargs):
            match type(item).__name__:
                case "ActionStep":
                    release_inputs(self._memory.steps)
                    self._emit_images(item)
                    self._observer.emit(StepEnded(self._agent_id, item))
                case "FinalAnswerStep":
                    self._observer.emit(AnswerAccepted(self._agent_id, result_of(item.output, "answer")))
                case _:
                    pass
            yield item

    def plan_stream(self, task: str, is_first_step: bool, step: int) -> Iterator[Any]:
        self._observer.emit(StepBegan(self._agent_id, step, "planning"))
        with self._failure_signal():
            for item in self._plan_stream(task, is_first_step=is_first_step, step=step):
                if type(item).__name__ == "PlanningStep":
                    self._observer.emit(PlanEnded(self._agent_id, item))
                yield item

    def step_stream(self, memory_step: Any) -> Iterator[Any]:
        self._calls = StepCalls(self._observer)
        self._observer.emit(StepBegan(self._agent_id, memory_step.step_number))
        with self._failure_signal():
            for item in self._step_stream(memory_step):
                self._emit_call(item)
                yield item

    @contextmanager
    def _failure_signal(self) -> Generator[None]:
        """Context manager that emits StepFailed if the step raises an error."""
        try:
            yield
        except (ThreadCancelled, GeneratorExit):
            raise
        except BaseException as error:
            self._observer.emit(StepFailed(self._agent_id, error_text(error)))
            raise

    def answer(self, task: str) -> Any:
        self._observer.emit(StepLimitReached(self._agent_id))
        return self._answer(task)

    def execute(self, tool_name: str, arguments: Any) -> Any:
        """Execute a tool call of the model and report it. Any thread may call this."""
        self._observer.check_cancelled()
        call = ObservedCall(self._agent_id, self._calls.start(tool_name, arguments), tool_name)
        try:
            return call.run(self._observer, arguments, partial(self._execute, tool_name))
        except ApprovalRejected as rejected:  # raising it would also fail the parallel calls
            return str(rejected)

    def _emit_call(self, item: Any) -> None:
        match type(item).__name__:
            case "ToolCall":
                number = self._calls.add(item)
                self._observer.emit(CallReady(self._agent_id, number, item.name, item.arguments, item.id or ""))
            case "ToolOutput":  # already emitted by `execute`, unless a subclass replaces it
                if number := self._calls.not_started(item.tool_call):
                    result = result_of(item.output, item.tool_call.name)
                    self._observer.emit(CallEnded(self._agent_id, number, result))
            case _:
                pass

    def _emit_images(self, step: Any) -> None:
        images = self._observer.new_images(step.observations_images or ())
        files = [file for image in images for file in result_of(image, f"observation-{step.step_number}").files]
        if files:
            self._observer.emit(ImagesObserved(self._agent_id, files))

    def _start_code(self, code: str) -> int:
        return self._calls.start(CODE, code)


class StepCalls:
    """The model's tool calls in one step that have not started yet, each with a number that is unique in the run.

    smolagents executes a call by name and arguments, without its id. The call is found by the identity of its arguments
    object, or else by its name. Calls with the same arguments object may be swapped.
    """

    def __init__(self, observer: Observer) -> None:
        self._observer = observer
        self._waiting: list[tuple[int, Any]] = []
        self._lock = Lock()

    def add(self, call: Any) -> int:
        """Add a tool call that the model has made, and return the number assigned to it."""
        number = self._observer.next_call_number()
        self._waiting.append((number, call))
        return number

    def not_started(self, call: Any) -> int:
        """Return the number assigned to a tool call that has not started; 0 if it has started."""
        return next((number for number, other in self._waiting if other is call), 0)

    def start(self, name: str, arguments: Any) -> int:
        """Mark a tool call as started and return the number assigned to it; 0 if the model has not made such a call."""
        with self._lock:
            named = [(number, call) for number, call in self._waiting if call.name == name]
            same = [(number, call) for number, call in named if call.arguments is arguments]
            for number, call in same or named:
                self._waiting.remove((number, call))
                return number
        return 0


class ManagedAgent:
    """Wraps a managed agent for its manager, so that each call of it is reported as a separate sub-agent.

    smolagents would run parallel calls on one object with a shared memory. Here a parallel call gets a copy of the
    agent; calls one after the other use the same agent.
    """

    def __init__(self, agent: Any, observer: Observer, parent_id: str) -> None:
        self._agent = agent
        self._observer = observer
        self._parent_id = parent_id
        self._busy = Lock()

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name == "_agent":
            raise AttributeError(name)
        return getattr(self._agent, name)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        self._observer.check_cancelled()
        if self._busy.acquire(blocking=False):
            try:
                return self._run(self._agent, args, kwargs)
            finally:
                self._busy.release()
        copied = copy_agent(self._agent)
        try:
            return self._run(copied, args, kwargs)
        finally:
            clean_up(copied)

    def _run(self, agent: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        name = str(agent.name)
        agent_id = self._observer.new_agent_id(name)
        clone = instrument(agent, self._observer, agent_id)
        self._observer.emit(agent_began(clone, agent_id, name, self._parent_id, CURRENT_CALL.get()))
        token = CURRENT_AGENT_ID.set(lambda: agent_id)
        try:
            report = clone(*args, **kwargs)
        except ThreadCancelled:
            raise
        except BaseException as error:
            self._observer.emit(AgentEnded(agent_id, error_text(error)))
            raise
        finally:
            CURRENT_AGENT_ID.reset(token)
        self._observer.emit(AgentEnded(agent_id))
        return report


def agent_began(
    agent: Any, agent_id: str = "", name: str = "", parent_id: str = "", call_number: int = 0
) -> AgentBegan:
    """Return the AgentBegan report of an agent, which describes the format of the agent's replies."""
    tags = getattr(agent, "code_block_tags", None)
    structured = bool(getattr(agent, "_use_structured_outputs_internally", False))
    answer_key = ANSWER_KEY if type(agent.tools.get(ANSWER)) is FinalAnswerTool else ""
    return AgentBegan(agent_id, name, parent_id, call_number, tuple(tags) if tags else None, structured, answer_key)


def _sync_tool(tool: Any, observer: Observer) -> Any:
    """Return the tool itself or, if it is a coroutine function, a copy that runs its coroutine to the end.

    smolagents would use the coroutine as the result. The coroutine runs in a new event loop in the thread of the call,
    so that a tool that blocks does not block others. Unlike an ordinary tool, it can be cancelled.
    """
    forward = getattr(tool, "forward", None)
    if not inspect.iscoroutinefunction(forward):
        return tool

    @wraps(forward)
    def run(*args: Any, **kwargs: Any) -> Any:
        return asyncio.run(_until_cancelled(forward(*args, **kwargs), observer))

    copied = copy.copy(tool)
    copied.forward = run
    return copied


async def _until_cancelled(work: Coroutine[Any, Any, Any], observer: Observer) -> Any:
    """Await a tool's coroutine, and cancel it if the run is stopped."""
    task = asyncio.ensure_future(work)
    while not task.done():
        await asyncio.wait({task}, timeout=POLL_SECONDS)
        if observer.cancelled and not task.done():
            task.cancel()
            await asyncio.wait({task})
            raise ThreadCancelled
    return task.result()
