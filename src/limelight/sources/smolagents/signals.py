"""What the taps on an agent hear, as values: the vocabulary between the thread that runs it and the translator.

smolagents' own objects travel in them as they are (`Any`). `agent_id` says whose tap it was; "" is the main agent. A
`ticket` numbers a tool call within a run, because the ids that models give repeat. 0 is no call at all.
"""

from typing import Any

import msgspec

from limelight.sources.base import FileMade
from limelight.sources.values import Outcome

NOTHING = Outcome("", [])
CODE = "python_interpreter"
"""smolagents' name for a call that is a piece of code."""
ANSWER = "final_answer"
"""Its name for the call that ends a run."""


class Signal(msgspec.Struct, frozen=True, gc=False):
    """The base of all signals."""

    agent_id: str


class AgentBegan(Signal, frozen=True, gc=False):
    """An agent got a task: the main one from the user, a managed one by the call with this ticket."""

    name: str = ""
    parent_id: str = ""
    ticket: int = 0
    tags: tuple[str, str] | None = None
    """What a code agent puts around its code; None for an agent that writes no code."""
    structured: bool = False
    """Whether a code agent answers with a JSON object of thought and code in place of tags."""


class AgentEnded(Signal, frozen=True, gc=False):
    """A managed agent has reported, or failed."""

    error: str | None = None


class StepBegan(Signal, frozen=True, gc=False):
    """A round of the loop: kind `action` or `planning`."""

    number: int
    step_kind: str = "action"


class StepBroke(Signal, frozen=True, gc=False):
    """The step raised, which its own record does not always say."""

    error: str


class LimitReached(Signal, frozen=True, gc=False):
    """No steps are left: what the model says now is the answer."""


class ModelSaid(Signal, frozen=True, gc=False):
    """One delta of the model's stream."""

    delta: Any


class ModelReplied(Signal, frozen=True, gc=False):
    """The model's reply is whole. If it was not streamed, this is the first that is heard of it."""

    message: Any
    model: str = ""
    streamed: bool = True


class CallMade(Signal, frozen=True, gc=False):
    """The arguments of a tool call are whole. `inner` calls are made by code, not by the model."""

    ticket: int
    name: str
    args: Any = None
    raw_id: str = ""
    inner: bool = False


class CallPrinted(Signal, frozen=True, gc=False):
    """Running code printed something."""

    ticket: int
    text: str


class CallEnded(Signal, frozen=True, gc=False):
    """A tool, or code, returned or raised."""

    ticket: int
    outcome: Outcome = NOTHING
    error: str | None = None
    seconds: float | None = None


class Pictured(Signal, frozen=True, gc=False):
    """Pictures were put before the agent's eyes: a screenshot, say."""

    files: list[FileMade]


class StepEnded(Signal, frozen=True, gc=False):
    """An ActionStep is over. At the limit of steps the last one comes twice."""

    step: Any


class Planned(Signal, frozen=True, gc=False):
    """A PlanningStep is over."""

    step: Any


class Answered(Signal, frozen=True, gc=False):
    """The agent's answer was accepted."""

    outcome: Outcome
