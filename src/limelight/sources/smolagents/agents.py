"""One agent's part in a run: what its model says, its steps and the calls that it has open, as Events.

Pure, like the translator that owns it. A model's first reply in a step is the agent's thought; what else the same model
is asked meanwhile (by a check of the answer, say) is nobody's.
"""

import json
from typing import Any, Literal, cast

import msgspec

from limelight.events import (
    Plan,
    PlanDelta,
    ReasoningDelta,
    ReasoningFinished,
    StepFinished,
    StepStarted,
    TextDelta,
    TextFinished,
)
from limelight.sources.base import FileMade, Item
from limelight.sources.smolagents.code_blocks import CodeBlocks, Piece
from limelight.sources.smolagents.plan_text import PlanText, plan_of
from limelight.sources.smolagents.signals import CODE, AgentBegan, CallMade, StepBegan
from limelight.sources.smolagents.tool_calls import CallBook, OpenCalls
from limelight.sources.values import Outcome, final_answer

Mode = Literal["idle", "thinking", "planning", "answering"]


class Shared:
    """What the parts of a run have in common: ids are unique within a run."""

    def __init__(self) -> None:
        self.calls = CallBook()
        self.messages = 0

    def message_id(self, what: str) -> str:
        self.messages += 1
        return f"{what}-{self.messages}"


class Part:
    """One agent of a run."""

    def __init__(self, began: AgentBegan, shared: Shared) -> None:
        self.agent_id = began.agent_id
        self._tags = began.tags
        self._structured = began.structured
        self._shared = shared
        self.calls = OpenCalls(began.agent_id, shared.calls)
        self._mode: Mode = "idle"
        self._step: StepStarted | None = None
        self._broke: str | None = None
        self._plans = 0
        self._plan = PlanText()
        self._message = ""
        self._text: list[str] = []
        self._blocks: CodeBlocks | None = None
        self.limit_reached = False

    # Steps

    def step_began(self, signal: StepBegan) -> list[Item]:
        closed = self._close_step(None)
        self._mode = "planning" if signal.step_kind == "planning" else "thinking"
        self._step = StepStarted(agent_id=self.agent_id, number=signal.number, step_kind=signal.step_kind)
        self._broke = None
        self._plan = PlanText()
        self.calls.next_reply()
        self._blocks = CodeBlocks(self._tags) if self._tags and not self._structured else None
        return [*closed, self._step]

    def step_broke(self, error: str) -> None:
        self._broke = error

    def step_ended(self, step: Any) -> list[Item]:
        """An ActionStep; one that came before is not told again."""
        return self._close_step(step)

    def planned(self, step: Any) -> list[Item]:
        """A PlanningStep."""
        said = getattr(step.model_output_message, "content", None)
        text = said if isinstance(said, str) and said.strip() else str(step.plan)
        plan = Plan(agent_id=self.agent_id, text=plan_of(text), update=self._plans > 0)
        self._plans += 1
        return [plan, *self._close_step(step)]

    def _close_step(self, record: Any) -> list[Item]:
        if self._step is None:
            return []
        raised = getattr(record, "error", None)
        error = self._broke or (None if raised is None else _message(raised))
        finished = self._finished_step(self._step, record, error)
        self._step, self._mode = None, "idle"
        return [*self._finish_message(), *self.calls.close(error), finished]

    def _finished_step(self, step: StepStarted, record: Any, error: str | None) -> StepFinished:
        usage = getattr(record, "token_usage", None)
        duration = getattr(getattr(record, "timing", None), "duration", None)
        return StepFinished(
            agent_id=self.agent_id,
            number=step.number,
            step_kind=step.step_kind,
            input_tokens=None if usage is None else usage.input_tokens,
            output_tokens=None if usage is None else usage.output_tokens,
            duration_ms=None if duration is None else round(duration * 1000),
            error=error,
        )

    def pictured(self, files: list[FileMade]) -> list[Item]:
        return [msgspec.structs.replace(file, agent_id=self.agent_id) for file in files]

    # What the model says

    def limit(self) -> list[Item]:
        self.limit_reached = True
        self._mode = "answering"
        return []

    def said(self, delta: Any) -> list[Item]:
        if self._mode == "thinking":
            items = self._thought(delta.content) if delta.content else []
            for call in delta.tool_calls or ():
                items += self._call_streamed(call)
            return items
        if self._mode == "planning" and delta.content:
            return self._plan_said(self._plan.feed(delta.content))
        if self._mode == "answering" and not self.agent_id and delta.content:
            return [self._delta(TextDelta, "answer", delta.content)]
        return []

    def replied(self, message: Any, streamed: bool) -> list[Item]:
        mode = self._mode
        if mode == "thinking":
            self._mode = "idle"
            items = [] if streamed else self._thought(_text(message.content))
            return [*items, *self._end_of_thought(_text(message.content))]
        if mode == "planning":
            self._mode = "idle"
            return self._plan_said(self._plan.rest()) if streamed else []
        if mode == "answering" and not streamed and not self.agent_id:
            return [self._delta(TextDelta, "answer", text)] if (text := _text(message.content)) else []
        return []

    def _plan_said(self, text: str) -> list[Item]:
        return [PlanDelta(agent_id=self.agent_id, text=text, update=self._plans > 0)] if text else []

    def _thought(self, text: str) -> list[Item]:
        if self._structured or not text:
            return []
        if self._blocks is not None:
            return [item for piece in self._blocks.feed(text) for item in self._piece(piece)]
        if not self._message and not text.strip():
            return []
        return [self._delta(ReasoningDelta, "thought", text)]

    def _end_of_thought(self, whole: str) -> list[Item]:
        items: list[Item] = []
        if self._structured:
            thought = _object(whole).get("thought")
            items += [self._delta(ReasoningDelta, "thought", thought)] if isinstance(thought, str) and thought else []
        if self._blocks is not None:
            items += [item for piece in self._blocks.end() for item in self._piece(piece)]
            items += self.calls.write(0, '"}')
        return [*items, *self._finish_message()]

    def _piece(self, piece: Piece) -> list[Item]:
        if piece.kind == "thought":
            return [self._delta(ReasoningDelta, "thought", piece.text)]
        items: list[Item] = []
        if not self.calls.has_begun(0):
            items += self._finish_message()
            items += self.calls.begin(0, CODE, f"{self.agent_id or 'main'}-code")
            items += self.calls.write(0, '{"code": "')
        return [*items, *self.calls.write(0, json.dumps(piece.text, ensure_ascii=False)[1:-1])]

    def _call_streamed(self, call: Any) -> list[Item]:
        name = getattr(call.function, "name", None) or ""
        text = getattr(call.function, "arguments", None)
        begun = self.calls.begin(call.index, name, call.id or "")
        written = self.calls.write(call.index, text) if isinstance(text, str) else []
        return [*self._finish_message(), *begun, *written]

    def _delta(self, kind: type[TextDelta] | type[ReasoningDelta], what: str, text: str) -> Item:
        if not self._message:
            self._message, self._text = self._shared.message_id(what), []
        self._text.append(text)
        return kind(agent_id=self.agent_id, message_id=self._message, text=text)

    def _finish_message(self) -> list[Item]:
        message_id, self._message = self._message, ""
        return [ReasoningFinished(agent_id=self.agent_id, message_id=message_id)] if message_id else []

    def call_made(self, signal: CallMade) -> list[Item]:
        is_code = self._tags and signal.name == CODE and isinstance(signal.args, str)
        args: Any = {"code": signal.args} if is_code else signal.args
        return [*self._finish_message(), *self.calls.made(signal, args)]

    # The end

    def answer(self, outcome: Outcome) -> list[Item]:
        """The main agent's answer. At the limit of steps it was streamed; otherwise nobody has seen it yet."""
        message_id, text = self._message, "".join(self._text)
        if not message_id:
            return [*outcome.files, final_answer(outcome.result)]
        self._message = ""
        answer = final_answer(outcome.result, message_id)
        if answer.content != text:
            answer = msgspec.structs.replace(answer, message_id=None)
        return [TextFinished(message_id=message_id), *outcome.files, answer]


def _text(content: Any) -> str:
    """The text of a message, whatever the form of its content."""
    if isinstance(content, list):
        blocks = [cast("dict[str, Any]", part) for part in cast("list[Any]", content) if isinstance(part, dict)]
        return "\n".join(str(block.get("text") or "") for block in blocks)
    return content if isinstance(content, str) else ""


def _object(text: str) -> dict[str, Any]:
    try:
        return msgspec.json.decode(text, type=dict[str, Any])
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):
        return {}


def _message(error: Any) -> str:
    return str(getattr(error, "message", None) or error)
