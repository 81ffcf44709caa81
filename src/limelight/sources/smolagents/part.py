"""One agent's part in a run: what its model says, its steps and the calls that it has open, as Events.

Pure, like the translator that owns it. A model's first reply in a step is the agent's thought; what else the same model
is asked meanwhile (by a check of the answer, say) is nobody's.
"""

import json
from typing import Any, Literal, cast

import msgspec

from limelight.events import (
    Plan,
    ReasoningDelta,
    ReasoningFinished,
    StepFinished,
    StepStarted,
    TextDelta,
    TextFinished,
    ToolArgsDelta,
    ToolFinished,
    ToolOutputDelta,
    ToolReady,
    ToolStarted,
)
from limelight.sources.base import CallIds, FileMade, Item
from limelight.sources.smolagents.code_blocks import CodeBlocks, Piece
from limelight.sources.smolagents.signals import AgentBegan, CallEnded, CallMade, CallPrinted, StepBegan
from limelight.sources.values import Outcome, args_value, final_answer

ANSWER = "final_answer"
CODE = "python_interpreter"
NEVER_RAN = "the call was never run"
Mode = Literal["idle", "thinking", "planning", "answering"]


class Shared:
    """What the parts of a run have in common: ids are unique within a run."""

    def __init__(self) -> None:
        self.call_ids = CallIds()
        self.calls: dict[int, str] = {}
        """The ids of calls, by ticket."""
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
        self._mode: Mode = "idle"
        self._step: StepStarted | None = None
        self._broke: str | None = None
        self._plans = 0
        self._message = ""
        self._text: list[str] = []
        self._blocks: CodeBlocks | None = None
        self._streamed: dict[int, str] = {}
        """Calls that the model has begun to make, by their index in the reply; "" for one that is not shown."""
        self._open: dict[str, str] = {}
        """Calls that are open, and their names."""
        self.limit_reached = False

    # Steps

    def step_began(self, signal: StepBegan) -> list[Item]:
        closed = self._close_step(None)
        self._mode = "planning" if signal.step_kind == "planning" else "thinking"
        self._step = StepStarted(agent_id=self.agent_id, number=signal.number, step_kind=signal.step_kind)
        self._broke = None
        self._streamed = {}
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
        self._plans += 1
        plan = Plan(agent_id=self.agent_id, text=text.partition("<end_plan>")[0].strip(), update=self._plans > 1)
        return [plan, *self._close_step(step)]

    def _close_step(self, record: Any) -> list[Item]:
        if self._step is None:
            return []
        raised = getattr(record, "error", None)
        error = self._broke or (None if raised is None else _message(raised))
        items: list[Item] = self._finish_message()
        for call_id in list(self._open):
            items += self._closing(call_id, error or NEVER_RAN)
        items.append(self._finished_step(self._step, record, error))
        self._step, self._mode = None, "idle"
        return items

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
        if self._mode == "answering" and not self.agent_id and delta.content:
            return [self._delta(TextDelta, "answer", delta.content)]
        return []

    def replied(self, message: Any, streamed: bool) -> list[Item]:
        mode = self._mode
        if mode == "thinking":
            self._mode = "idle"
            items = [] if streamed else self._thought(_text(message.content))
            return [*items, *self._end_of_thought(_text(message.content))]
        if mode == "answering" and not streamed and not self.agent_id:
            return [self._delta(TextDelta, "answer", text)] if (text := _text(message.content)) else []
        return []

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
            if call_id := self._streamed.get(0):
                items.append(ToolArgsDelta(agent_id=self.agent_id, call_id=call_id, text='"}'))
        return [*items, *self._finish_message()]

    def _piece(self, piece: Piece) -> list[Item]:
        if piece.kind == "thought":
            return [self._delta(ReasoningDelta, "thought", piece.text)]
        items: list[Item] = []
        if 0 not in self._streamed:
            items = self._start(0, CODE, f"{self.agent_id or 'main'}-code")
            items.append(ToolArgsDelta(agent_id=self.agent_id, call_id=self._streamed[0], text='{"code": "'))
        escaped = json.dumps(piece.text, ensure_ascii=False)[1:-1]
        return [*items, ToolArgsDelta(agent_id=self.agent_id, call_id=self._streamed[0], text=escaped)]

    def _call_streamed(self, call: Any) -> list[Item]:
        name = getattr(call.function, "name", None) or ""
        items: list[Item] = []
        if call.index not in self._streamed:
            if not name:
                return []
            items = self._start(call.index, name, call.id or "")
        text = getattr(call.function, "arguments", None)
        if isinstance(text, str) and text and (call_id := self._streamed[call.index]):
            items.append(ToolArgsDelta(agent_id=self.agent_id, call_id=call_id, text=text))
        return items

    def _start(self, index: int, name: str, raw_id: str) -> list[Item]:
        """A call whose arguments are on their way."""
        finished = self._finish_message()
        if name == ANSWER:
            self._streamed[index] = ""
            return finished
        call_id = self._streamed[index] = self._shared.call_ids.start(raw_id)
        self._open[call_id] = name
        return [*finished, ToolStarted(agent_id=self.agent_id, call_id=call_id, name=name)]

    def _delta(self, kind: type[TextDelta] | type[ReasoningDelta], what: str, text: str) -> Item:
        if not self._message:
            self._message, self._text = self._shared.message_id(what), []
        self._text.append(text)
        return kind(agent_id=self.agent_id, message_id=self._message, text=text)

    def _finish_message(self) -> list[Item]:
        message_id, self._message = self._message, ""
        return [ReasoningFinished(agent_id=self.agent_id, message_id=message_id)] if message_id else []

    # Tool calls

    def call_made(self, signal: CallMade) -> list[Item]:
        args: Any = signal.args
        if self._tags and signal.name == CODE and isinstance(args, str):
            args = {"code": args}
        streamed = None if signal.inner else next(iter(self._streamed), None)
        call_id = "" if streamed is None else self._streamed.pop(streamed)
        if signal.name == ANSWER:
            return self._closing(call_id, NEVER_RAN) if call_id else []
        if call_id:
            self._shared.calls[signal.ticket] = call_id
            return [ToolReady(agent_id=self.agent_id, call_id=call_id, args=args_value(args))]
        call_id = self._shared.calls[signal.ticket] = self._shared.call_ids.start(signal.raw_id)
        self._open[call_id] = signal.name
        started = ToolStarted(agent_id=self.agent_id, call_id=call_id, name=signal.name, args=args_value(args))
        return [*self._finish_message(), started]

    def call_printed(self, signal: CallPrinted) -> list[Item]:
        call_id = self._shared.calls.get(signal.ticket)
        if call_id not in self._open:
            return []
        return [ToolOutputDelta(agent_id=self.agent_id, call_id=call_id, text=signal.text)]

    def call_ended(self, signal: CallEnded) -> list[Item]:
        call_id = self._shared.calls.get(signal.ticket)
        if call_id not in self._open:
            return []
        if signal.error is not None:
            return self._closing(call_id, signal.error, signal.seconds)
        del self._open[call_id]
        result, made = signal.outcome
        files = [msgspec.structs.replace(file, call_id=call_id, agent_id=self.agent_id) for file in made]
        duration = None if signal.seconds is None else round(signal.seconds * 1000)
        finished = ToolFinished(agent_id=self.agent_id, call_id=call_id, result=result, duration_ms=duration)
        return [*files, finished]

    def _closing(self, call_id: str, error: str, seconds: float | None = None) -> list[Item]:
        self._open.pop(call_id, None)
        duration = None if seconds is None else round(seconds * 1000)
        result = f"Error: {error}"
        return [ToolFinished(agent_id=self.agent_id, call_id=call_id, result=result, error=error, duration_ms=duration)]

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
