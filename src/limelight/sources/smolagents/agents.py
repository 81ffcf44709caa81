"""One agent of a run: its reasoning, code, plans, steps and answer, as Events. Pure.

The model's first reply in a step is shown as the agent's thought. Any other reply in the step, such as one to a check
of the answer, is not shown.
"""

import json
from typing import Any, Literal

import msgspec

from limelight.events import AnyEvent, Plan, PlanDelta, StepFinished, StepStarted
from limelight.grammar import parse_args
from limelight.sources.base import Item
from limelight.sources.messages import AgentMessages, MessageIds
from limelight.sources.smolagents.messages import CodeParser, Piece, PlanParser, content_text, plan_in
from limelight.sources.smolagents.signals import CODE, AgentBegan, CallReady, StepBegan
from limelight.sources.smolagents.tool_calls import AgentCalls, RunCalls
from limelight.sources.tool_results import ToolResult, fields_of, final_answer

Mode = Literal["idle", "thinking", "planning", "answering"]
"""How the next reply of the model is used. In the mode `idle` it is not shown."""


class AgentRun:
    """The state of one agent in a run, and the translation of its signals into Events."""

    def __init__(self, began: AgentBegan, message_ids: MessageIds, run_calls: RunCalls) -> None:
        self.agent_id = began.agent_id
        self.calls = AgentCalls(began.agent_id, run_calls)
        self.limit_reached = False
        self._messages = AgentMessages(began.agent_id, message_ids)
        self._tags = began.tags
        self._structured = began.structured
        self._mode: Mode = "idle"
        self._step: StepStarted | None = None
        self._step_error: str | None = None
        self._plans = 0
        self._plan_parser = PlanParser()
        self._code_parser: CodeParser | None = None

    # Steps

    def start_step(self, signal: StepBegan) -> list[Item]:
        closed = self.end_step(None)
        self._mode = "planning" if signal.step_kind == "planning" else "thinking"
        self._step = StepStarted(agent_id=self.agent_id, number=signal.number, step_kind=signal.step_kind)
        self._step_error = None
        self._plan_parser = PlanParser()
        self._code_parser = CodeParser(self._tags) if self._tags and not self._structured else None
        self.calls.start_reply()
        return [*closed, self._step]

    def fail_step(self, error: str) -> None:
        self._step_error = error

    def end_plan(self, step: Any) -> list[Item]:
        """Show the plan of a PlanningStep and end the step."""
        reply = getattr(step.model_output_message, "content", None)
        text = reply if isinstance(reply, str) and reply.strip() else str(step.plan)
        plan = Plan(agent_id=self.agent_id, text=plan_in(text), update=self._plans > 0)
        self._plans += 1
        return [plan, *self.end_step(step)]

    def end_step(self, record: Any) -> list[Item]:
        """End the open step. `record` is smolagents' ActionStep or PlanningStep; None if it is unknown."""
        if self._step is None:  # smolagents reports some steps twice
            return []
        raised = getattr(record, "error", None)
        error = self._step_error or (None if raised is None else str(getattr(raised, "message", None) or raised))
        usage = getattr(record, "token_usage", None)
        seconds = getattr(getattr(record, "timing", None), "duration", None)
        finished = StepFinished(
            agent_id=self.agent_id,
            number=self._step.number,
            step_kind=self._step.step_kind,
            input_tokens=None if usage is None else usage.input_tokens,
            output_tokens=None if usage is None else usage.output_tokens,
            duration_ms=None if seconds is None else round(seconds * 1000),
            error=error,
        )
        self._step, self._mode = None, "idle"
        return [*self._messages.close(), *self.calls.close(error), finished]

    # Replies of the model

    def reach_limit(self) -> list[Item]:
        self.limit_reached = True
        self._mode = "answering"
        return []

    def feed(self, delta: Any) -> list[AnyEvent]:
        """Translate a delta of a streamed reply."""
        if self._mode == "thinking":
            events = self._add_thought(delta.content) if delta.content else []
            for call in delta.tool_calls or ():
                events += self._stream_call(call)
            return events
        if self._mode == "planning" and delta.content:
            return self._plan_delta(self._plan_parser.feed(delta.content))
        if self._mode == "answering" and not self.agent_id and delta.content:
            return self._messages.text(delta.content)
        return []

    def end_reply(self, message: Any, streamed: bool) -> list[AnyEvent]:
        """End a reply of the model. A reply that was not streamed is shown now."""
        mode, text = self._mode, content_text(message.content)
        if mode == "thinking":
            self._mode = "idle"
            events = [] if streamed else self._add_thought(text)
            return [*events, *self._end_thought(text)]
        if mode == "planning":
            self._mode = "idle"
            return self._plan_delta(self._plan_parser.end()) if streamed else []
        if mode == "answering" and not streamed and not self.agent_id:
            return self._messages.text(text)
        return []

    def _plan_delta(self, text: str) -> list[AnyEvent]:
        return [PlanDelta(agent_id=self.agent_id, text=text, update=self._plans > 0)] if text else []

    def _add_thought(self, text: str) -> list[AnyEvent]:
        if self._structured:  # shown when the JSON is complete
            return []
        if self._code_parser is not None:
            return [event for piece in self._code_parser.feed(text) for event in self._add_piece(piece)]
        if self._messages.reasoning_id is None and not text.strip():
            return []
        return self._messages.reasoning(text)

    def _end_thought(self, reply: str) -> list[AnyEvent]:
        events: list[AnyEvent] = []
        if self._structured:
            thought = fields_of(parse_args(reply)).get("thought")
            events += self._messages.reasoning(thought) if isinstance(thought, str) else []
        if self._code_parser is not None:
            events += [event for piece in self._code_parser.end() for event in self._add_piece(piece)]
            events += self.calls.append_args(0, '"}')
        return [*events, *self._messages.close()]

    def _add_piece(self, piece: Piece) -> list[AnyEvent]:
        if piece.kind == "thought":
            return self._messages.reasoning(piece.text)
        events: list[AnyEvent] = []
        if not self.calls.is_streamed(0):
            events += self._messages.close()
            events += self.calls.stream(0, CODE, f"{self.agent_id or 'main'}-code")
            events += self.calls.append_args(0, '{"code": "')
        return [*events, *self.calls.append_args(0, json.dumps(piece.text, ensure_ascii=False)[1:-1])]

    def _stream_call(self, call: Any) -> list[AnyEvent]:
        name = getattr(call.function, "name", None) or ""
        text = getattr(call.function, "arguments", None)
        started = self.calls.stream(call.index, name, call.id or "")
        args = self.calls.append_args(call.index, text) if isinstance(text, str) else []
        return [*self._messages.close(), *started, *args]

    def ready_call(self, signal: CallReady) -> list[Item]:
        is_code = self._tags and signal.name == CODE and isinstance(signal.args, str)
        args: Any = {"code": signal.args} if is_code else signal.args
        return [*self._messages.close(), *self.calls.ready(signal, args)]

    # The end

    def answer(self, result: ToolResult) -> list[Item]:
        """Return the final answer of the main agent, with its files.

        The answer has a message id only if it was streamed, which happens at the step limit.
        """
        closed = self._messages.close()
        answer = final_answer(result.value, self._messages.last_id)
        if answer.content != self._messages.last_text:
            answer = msgspec.structs.replace(answer, message_id=None)
        return [*closed, *result.files, answer]
