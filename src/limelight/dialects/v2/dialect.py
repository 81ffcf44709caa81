"""From Records to DSAgentRunMessages: who says what in which step, and in which pane it is shown.

Every source gives steps here. Where a framework has none (a plain function), a step is what was said and the tools
that followed it. A text of an agent streams as `action_thought`; if it turns out to be the answer, its last message,
under the same id, is the `final_answer`: so no answer appears twice.
"""

from typing import ClassVar, assert_never

from limelight.deltas import DELTA_TYPES, Delta
from limelight.dialects.base import encode, rooted
from limelight.dialects.v2.notices import Asides
from limelight.dialects.v2.steps import Steps
from limelight.dialects.v2.texts import Voice
from limelight.dialects.v2.tool_calls import Tools
from limelight.dialects.v2.writer import Outbox
from limelight.events import (
    AgentFinished,
    AgentStarted,
    AnyEvent,
    ApprovalRequested,
    ApprovalResolved,
    ArtifactMade,
    Event,
    FinalAnswer,
    Plan,
    PlanDelta,
    ReasoningDelta,
    ReasoningFinished,
    Record,
    RunCancelled,
    RunFailed,
    RunFinished,
    RunStarted,
    SourceCited,
    Status,
    StepFinished,
    StepStarted,
    TextDelta,
    TextFinished,
    ToolArgsDelta,
    ToolFinished,
    ToolOutputDelta,
    ToolReady,
    ToolStarted,
    Usage,
)
from limelight.grammar import reason_to_close


class V2Dialect:
    """Keeps each agent's steps and texts, and the open calls."""

    event_name: ClassVar[str] = ""
    joins: ClassVar[bool] = True
    DROPS: ClassVar[frozenset[type[Event]]] = frozenset({ToolArgsDelta})

    def __init__(self, root: str = "") -> None:
        self._root = root
        self._outbox = Outbox()
        self._steps: dict[str, Steps] = {}
        self._started = RunStarted(agent="")
        self._voice = Voice(self._outbox, self._steps_of)
        self._tools = Tools(self._outbox, self._steps_of)
        self._asides = Asides(self._outbox, self._steps_of, root)

    def feed(self, record: Record) -> list[bytes]:
        self._outbox.open(record.at, delta=isinstance(record.event, DELTA_TYPES))
        self._take(rooted(record, self._root).event)
        return self._outbox.taken()

    def fits(self, event: Delta) -> bool:
        """A text goes on on another page behind 48 KiB, and that has to be seen in the delta where it happens."""
        match event:
            case TextDelta() | ReasoningDelta():
                return self._voice.has_room(event)
            case PlanDelta():
                return self._steps_of(event.agent_id).has_room(event)
            case ToolOutputDelta():
                return self._tools.has_room(event)
            case ToolArgsDelta():
                return True

    def gap(self, first: int, last: int) -> bytes:
        return encode({"type": "gap", "from": first, "to": last})

    def _take(self, event: AnyEvent) -> None:
        match event:
            case TextDelta() | ReasoningDelta():
                self._voice.grow(event)
            case TextFinished() | ReasoningFinished():
                self._voice.finish(event)
            case RunStarted():
                self._begin(event)
            case StepStarted():
                self._voice.settle(event.agent_id)
                self._steps_of(event.agent_id).start(event)
            case StepFinished():
                self._steps_of(event.agent_id).finish(event, later=self._voice.holds(event.agent_id))
            case PlanDelta():
                self._voice.settle(event.agent_id)
                self._steps_of(event.agent_id).grow_plan(event)
            case Plan() if event.items:
                self._steps_of(event.agent_id).settle_plan()
                self._asides.todos(event)
            case Plan():
                self._voice.settle(event.agent_id)
                self._steps_of(event.agent_id).plan(event)
            case ToolStarted() | ToolReady() | ToolOutputDelta() | ToolFinished():
                self._act(event)
            case AgentStarted():
                self._voice.settle(event.parent_id)
                self._outbox.meet(event)
                self._asides.agent(event)
            case AgentFinished():
                self._excuse(event.error, event.agent_id)
                self._steps_of(event.agent_id).close()
                self._asides.agent(event)
            case ApprovalRequested() | ApprovalResolved():
                self._asides.approval(event)
            case Status() | SourceCited() | ArtifactMade():
                self._asides.tell(event)
            case Usage():
                self._steps_of(event.agent_id).pays(event)
                self._asides.tell(event)
            case FinalAnswer():
                self._voice.answer(event)
            case RunFinished() | RunFailed() | RunCancelled():
                self._end(event)
            case ToolArgsDelta():
                pass
            case _:
                assert_never(event)

    def _begin(self, event: RunStarted) -> None:
        self._outbox.turn = event.turn
        self._started = event
        self._voice.begin(event)
        self._tools.begin(event)
        self._asides.question(event)

    def _steps_of(self, agent_id: str) -> Steps:
        if agent_id not in self._steps:
            live = self._started.enable_streaming
            self._steps[agent_id] = Steps(self._outbox, agent_id, live=live)
        return self._steps[agent_id]

    def _act(self, event: ToolStarted | ToolReady | ToolOutputDelta | ToolFinished) -> None:
        if isinstance(event, ToolStarted | ToolReady):
            self._voice.acts(event.agent_id)
        self._tools.take(event)

    def _excuse(self, reason: str | None, *agent_ids: str) -> None:
        if reason is not None:
            for agent_id in agent_ids:
                self._steps_of(agent_id).excuse(reason)

    def _end(self, event: RunFinished | RunFailed | RunCancelled) -> None:
        self._excuse(reason_to_close(event), *self._steps)
        self._voice.settle("")
        for steps in self._steps.values():
            steps.close()
        self._asides.end(event)
