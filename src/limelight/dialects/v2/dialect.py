"""The dialect of DeepSearchAgents' Web API v2, which translates Records into messages of type DSAgentRunMessage.

`V2Dialect` passes each event to the module that writes its messages: `thoughts_and_answer`, `steps`, `tool_calls` or
`notices`.
"""

from typing import assert_never

from limelight.deltas import DELTA_TYPES, Delta
from limelight.dialects.base import Dialect, EventReader, encode
from limelight.dialects.v2.message_writer import MessageWriter
from limelight.dialects.v2.notices import Notices
from limelight.dialects.v2.steps import Steps
from limelight.dialects.v2.thoughts_and_answer import ThoughtsAndAnswer
from limelight.dialects.v2.tool_calls import ToolCalls
from limelight.events import (
    AgentFinished,
    AgentStarted,
    AnyEvent,
    ApprovalRequested,
    ApprovalResolved,
    ArtifactMade,
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
    Terminal,
    TextDelta,
    TextFinished,
    ToolArgsDelta,
    ToolFinished,
    ToolOutputDelta,
    ToolReady,
    ToolStarted,
    Usage,
)


class V2Dialect(Dialect):
    """Translates one run into v2 messages. Its state is each agent's steps, and the open texts and tool calls."""

    def __init__(self, root: str = "") -> None:
        self._reader = EventReader(root)
        self._writer = MessageWriter()
        self._steps: dict[str, Steps] = {}
        self._texts = ThoughtsAndAnswer(self._writer, self._steps_of)
        self._tool_calls = ToolCalls(self._writer, self._steps_of)
        self._notices = Notices(self._writer, self._steps_of, root)

    def feed(self, record: Record) -> list[bytes]:
        self._writer.begin_record(record.at, is_delta=isinstance(record.event, DELTA_TYPES))
        self._write(self._reader.read(record.event))
        return self._writer.take_messages()

    def fits(self, event: Delta) -> bool:
        """Whether a delta joined from several fits into the current message; otherwise they must be fed one by one."""
        match event:
            case TextDelta() | ReasoningDelta():
                return self._texts.fits(event)
            case PlanDelta():
                return self._steps_of(event.agent_id).plan_fits(event)
            case ToolArgsDelta() | ToolOutputDelta():
                return self._tool_calls.fits(event)

    def gap(self, first: int, last: int) -> bytes:
        return encode({"type": "gap", "from": first, "to": last})

    def _write(self, event: AnyEvent) -> None:
        match event:
            case TextDelta() | ReasoningDelta():
                self._texts.append(event)
            case TextFinished() | ReasoningFinished():
                self._texts.finish(event)
            case RunStarted():
                self._begin(event)
            case StepStarted():
                self._texts.release_held(event.agent_id)
                self._steps_of(event.agent_id).start(event)
            case StepFinished():
                self._steps_of(event.agent_id).finish(event, has_open_text=self._texts.has_open(event.agent_id))
            case PlanDelta():
                self._texts.release_held(event.agent_id)
                self._steps_of(event.agent_id).append_plan(event)
            case Plan() if event.items:
                self._steps_of(event.agent_id).end_open_plan()
                self._notices.todos(event)
            case Plan():
                self._texts.release_held(event.agent_id)
                self._steps_of(event.agent_id).finish_plan(event)
            case ToolStarted() | ToolReady():
                self._texts.begin_tool_call(event.agent_id)
                self._tool_calls.feed(event)
            case ToolArgsDelta() | ToolOutputDelta() | ToolFinished():
                self._tool_calls.feed(event)
            case AgentStarted():
                self._texts.release_held(event.parent_id)
                self._writer.add_agent(event)
                self._notices.agent(event)
            case AgentFinished():
                steps = self._steps_of(event.agent_id)
                if event.error is not None:
                    steps.drop_repeated_error(event.error)
                steps.close()
                self._notices.agent(event)
            case ApprovalRequested() | ApprovalResolved():
                self._notices.approval(event)
            case Status():
                self._notices.status(event)
            case SourceCited():
                self._notices.source(event)
            case ArtifactMade():
                self._notices.file(event)
            case Usage():
                self._steps_of(event.agent_id).add_usage(event)
                self._notices.usage(event)
            case FinalAnswer():
                self._texts.final_answer(event)
            case RunFinished() | RunFailed() | RunCancelled():
                self._end(event)
            case _:
                assert_never(event)

    def _begin(self, event: RunStarted) -> None:
        self._writer.turn, self._writer.streams = event.turn, event.enable_streaming
        self._texts.begin(event)
        self._notices.user_input(event)

    def _end(self, event: Terminal) -> None:
        if isinstance(event, RunFailed):
            for steps in self._steps.values():
                steps.drop_repeated_error(event.message)
        self._texts.release_held("")
        for steps in self._steps.values():
            steps.close()
        self._notices.run_end(event)

    def _steps_of(self, agent_id: str) -> Steps:
        if agent_id not in self._steps:
            self._steps[agent_id] = Steps(self._writer, agent_id)
        return self._steps[agent_id]
