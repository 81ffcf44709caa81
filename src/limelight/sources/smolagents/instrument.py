"""Taps on an agent: a clone for one turn that behaves as the agent does, and tells what it does.

The clone shares memory, state and executor with the agent of the conversation; only what is listened to is replaced,
and thrown away with it. The methods are smolagents' own, `_step_stream` and the like included: an extra pins the
version. Nothing is told from where `_run_stream` could not be left: an exception has to come up from inside a step, or
between two.
"""

import copy
import time
from collections.abc import Iterator
from typing import Any, cast

from limelight.sources.smolagents.approvals import Rejected
from limelight.sources.smolagents.async_tools import awaited
from limelight.sources.smolagents.current_call import Calls
from limelight.sources.smolagents.error_text import told
from limelight.sources.smolagents.executor import HeardExecutor
from limelight.sources.smolagents.managed_agents import SPAWNING, ManagedAgent
from limelight.sources.smolagents.model import listened_to
from limelight.sources.smolagents.observer import Observer
from limelight.sources.smolagents.outputs import outcome_of, sendable
from limelight.sources.smolagents.signals import (
    CODE,
    NOTHING,
    Answered,
    CallEnded,
    CallMade,
    LimitReached,
    Pictured,
    Planned,
    StepBegan,
    StepBroke,
    StepEnded,
)
from limelight.sources.threads import Left
from limelight.sources.values import Outcome

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
"""The attributes of a clone that are not the agent's own."""

HEARD = frozenset({"ToolCall", "ToolOutput", "ActionStep", "PlanningStep", "FinalAnswerStep"})
"""What smolagents yields and is told."""
DROPS = {
    "ActionOutput": "the end of the call, the step and the answer say the same",
    "ChatMessageStreamDelta": "the model is listened to directly, so the agent's own streaming is off",
    "ChatMessageToolCall": "smolagents names it among its events and never sends it",
}
"""What smolagents yields and nobody needs, with the reason. A model's `reasoning_content` never gets this far:
smolagents drops it."""


def tapped(agent: Any, observer: Observer, agent_id: str = "") -> Any:
    """A clone of the agent that tells the observer what it does."""
    clone = copy.copy(agent)
    clone.model = listened_to(agent.model, observer, agent_id, keep_empty=agent.stream_outputs)
    clone.stream_outputs = False
    clone.tools = {name: awaited(tool, observer) for name, tool in agent.tools.items()}
    clone.managed_agents = {
        name: ManagedAgent(managed, observer, agent_id, tapped) for name, managed in agent.managed_agents.items()
    }
    AgentTap(clone, observer, agent_id)
    return clone


def settle(clone: Any, agent: Any) -> None:
    """After a turn: what the clone has learned about itself stays with the agent."""
    attributes = cast("dict[str, Any]", vars(clone))
    for name, value in attributes.items():
        if name not in REPLACED:
            setattr(agent, name, value)


class AgentTap:
    """Replaces methods of a clone by ones that call them and tell about it."""

    def __init__(self, clone: Any, observer: Observer, agent_id: str) -> None:
        self._observer = observer
        self._agent_id = agent_id
        self._calls = Calls(observer)
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
            clone.python_executor = HeardExecutor(clone.python_executor, observer, agent_id, self._code_begins)

    def run_stream(self, *args: Any, **kwargs: Any) -> Iterator[Any]:
        for item in self._run_stream(*args, **kwargs):
            match type(item).__name__:
                case "ActionStep":
                    self._pictured(item)
                    self._observer.tell(StepEnded(self._agent_id, item))
                case "FinalAnswerStep":
                    self._observer.tell(Answered(self._agent_id, outcome_of(item.output, "answer")))
                case _:
                    pass
            yield item

    def plan_stream(self, task: str, is_first_step: bool, step: int) -> Iterator[Any]:
        self._observer.tell(StepBegan(self._agent_id, step, "planning"))
        try:
            for item in self._plan_stream(task, is_first_step=is_first_step, step=step):
                if type(item).__name__ == "PlanningStep":
                    self._observer.tell(Planned(self._agent_id, item))
                yield item
        except (Left, GeneratorExit):
            raise
        except BaseException as error:
            self._observer.tell(StepBroke(self._agent_id, told(error)))
            raise

    def step_stream(self, memory_step: Any) -> Iterator[Any]:
        self._calls = Calls(self._observer)
        self._observer.tell(StepBegan(self._agent_id, memory_step.step_number))
        try:
            for item in self._step_stream(memory_step):
                self._hear(item)
                yield item
        except (Left, GeneratorExit):
            raise
        except BaseException as error:
            self._observer.tell(StepBroke(self._agent_id, told(error)))
            raise

    def answer(self, task: str) -> Any:
        self._observer.tell(LimitReached(self._agent_id))
        return self._answer(task)

    def execute(self, tool_name: str, arguments: Any) -> Any:
        """One tool call, in whatever thread. Its end is told at once, also if smolagents drops it."""
        self._observer.check()
        ticket = self._calls.begins(tool_name, arguments)
        try:
            arguments = self._observer.permitted(self._agent_id, ticket, tool_name, arguments)
        except Rejected as rejected:  # raised, it would take the calls beside it along
            self._ended(ticket, time.perf_counter(), error=str(rejected))
            return str(rejected)
        spawning = SPAWNING.set(ticket)
        begun = time.perf_counter()
        try:
            with self._observer.works(tool_name):
                output = sendable(self._execute(tool_name, arguments))
        except Left:
            raise
        except BaseException as error:  # also of a tool that exits
            self._ended(ticket, begun, error=told(error))
            raise
        finally:
            SPAWNING.reset(spawning)
        self._ended(ticket, begun, outcome_of(output, tool_name))
        return output

    def _ended(self, ticket: int, begun: float, outcome: Outcome = NOTHING, error: str | None = None) -> None:
        seconds = time.perf_counter() - begun
        self._observer.tell(CallEnded(self._agent_id, ticket, outcome, error, seconds))

    def _hear(self, item: Any) -> None:
        match type(item).__name__:
            case "ToolCall":
                ticket = self._calls.made(item)
                self._observer.tell(CallMade(self._agent_id, ticket, item.name, item.arguments, item.id or ""))
            case "ToolOutput":  # told before, unless an agent runs its calls in a way of its own
                if ticket := self._calls.unheard(item.tool_call):
                    outcome = outcome_of(item.output, item.tool_call.name)
                    self._observer.tell(CallEnded(self._agent_id, ticket, outcome))
            case _:
                pass

    def _pictured(self, step: Any) -> None:
        images = self._observer.new_pictures(step.observations_images or ())
        files = [file for image in images for file in outcome_of(image, f"observation-{step.step_number}").files]
        if files:
            self._observer.tell(Pictured(self._agent_id, files))

    def _code_begins(self, code: str) -> int:
        return self._calls.begins(CODE, code)
