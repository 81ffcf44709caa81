"""Translates the work of one agent of a run, its reasoning, code, plans, steps and answer, into Events. Pure.

The model's first reply in a step is shown as the agent's thought. Any other reply in the step, such as one to a check
of the answer, is not shown.
"""

import json
from typing import Any, Literal

import msgspec

from limelight.events import Plan, PlanDelta, StepFinished, StepStarted
from limelight.sources.base import Item
from limelight.sources.messages import AgentMessages, MessageIds
from limelight.sources.smolagents.messages import CodeParser, Piece, PlanParser, StructuredParser, content_text, plan_in
from limelight.sources.smolagents.reports import ANSWER, CODE, AgentBegan, CallReady, StepBegan
from limelight.sources.smolagents.tool_calls import AgentCalls, RunCalls
from limelight.sources.tool_results import ToolResult, final_answer
from limelight.streamed_json import StringFieldDecoder

Mode = Literal["idle", "thinking", "planning", "answering"]
"""What the next reply of the model is. A reply in the mode `idle` emits no events."""


CODE_BEGINNING, CODE_END = '{"code": "', '"}'
"""The JSON before and after the code in the arguments of the tool call that represents a code execution."""


class AgentRun:
    """The state of one agent in a run. It translates the agent's reports into Events."""

    def __init__(self, began: AgentBegan, message_ids: MessageIds, run_calls: RunCalls) -> None:
        self.agent_id = began.agent_id
        self.calls = AgentCalls(began.agent_id, run_calls)
        self.limit_reached = False
        self._messages = AgentMessages(began.agent_id, message_ids)
        self._tags = began.tags
        self._structured = began.structured
        self._answer_key = began.answer_key
        self._answers: dict[int, StringFieldDecoder] = {}
        """The calls of `final_answer` in the reply that is streamed, by index, with the decoders of their arguments."""
        self._mode: Mode = "idle"
        self._step: StepStarted | None = None
        self._step_error: str | None = None
        self._plans = 0
        self._plan_parser = PlanParser()
        self._code_parser: CodeParser | StructuredParser | None = None

    # Steps

    def start_step(self, report: StepBegan) -> list[Item]:
        closed = self.end_step(None)
        self._mode = "planning" if report.step_kind == "planning" else "thinking"
        self._step = StepStarted(agent_id=self.agent_id, number=report.number, step_kind=report.step_kind)
        self._step_error = None
        self._plan_parser = PlanParser()
        self._code_parser = self._new_code_parser()
        self._answers = {}
        self._messages.forget_last()
        self.calls.start_reply()
        return [*closed, self._step]

    def _new_code_parser(self) -> CodeParser | StructuredParser | None:
        if self._tags is None:
            return None
        return StructuredParser(self._tags) if self._structured else CodeParser(self._tags)

    def fail_step(self, error: str) -> None:
        self._step_error = error

    def end_plan(self, step: Any) -> list[Item]:
        """Return the events for the plan in smolagents' PlanningStep, and for the end of the step."""
        reply = getattr(step.model_output_message, "content", None)
        text = reply if isinstance(reply, str) and reply.strip() else str(step.plan)
        plan = Plan(agent_id=self.agent_id, text=plan_in(text), update=self._plans > 0)
        self._plans += 1
        return [plan, *self.end_step(step)]

    def end_step(self, record: Any) -> list[Item]:
        """Return the events that end the open step; `record` is smolagents' record of it, None if it is unknown."""
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

    def feed(self, delta: Any) -> list[Item]:
        """Translate a delta of a reply that the model is streaming."""
        if self._mode == "thinking":
            events = self._add_thought(delta.content) if delta.content else []
            for call in delta.tool_calls or ():
                events += self._stream_call(call)
            return events
        if self._mode == "planning" and delta.content:
            return self._plan_delta(self._plan_parser.feed(delta.content))
        if self._mode == "answering" and delta.content:
            return [*self._messages.text(delta.content)]
        return []

    def end_reply(self, message: Any, streamed: bool) -> list[Item]:
        """Return the events that end a reply of the model; a reply that was not streamed is emitted now."""
        mode, text = self._mode, content_text(message.content)
        if mode == "thinking":
            self._mode = "idle"
            events = [] if streamed else self._add_thought(text)
            return [*events, *self._end_thought()]
        if mode == "planning":
            self._mode = "idle"
            return self._plan_delta(self._plan_parser.end()) if streamed else []
        if mode == "answering" and not streamed:
            return [*self._messages.text(text)]
        return []

    def _plan_delta(self, text: str) -> list[Item]:
        return [PlanDelta(agent_id=self.agent_id, text=text, update=self._plans > 0)] if text else []

    def _add_thought(self, text: str) -> list[Item]:
        if self._code_parser is not None:
            return [event for piece in self._code_parser.feed(text) for event in self._add_piece(piece)]
        if self._messages.reasoning_id is None and not text.strip():
            return []
        return [*self._messages.reasoning(text)]

    def _end_thought(self) -> list[Item]:
        events: list[Item] = []
        if self._code_parser is not None:
            events += [event for piece in self._code_parser.end() for event in self._add_piece(piece)]
            events += self.calls.append_args(0, CODE_END)
        return [*events, *self._messages.close()]

    def _add_piece(self, piece: Piece) -> list[Item]:
        if piece.kind == "thought":
            return [*self._messages.reasoning(piece.text)]
        if piece.kind == "discard":
            return [*self.calls.append_args(0, CODE_END), *self.calls.discard(0)]
        events: list[Item] = []
        if not self.calls.is_streamed(0):
            events += self._messages.close()
            events += self.calls.stream(0, CODE, f"{self.agent_id or 'main'}-code")
            events += self.calls.append_args(0, CODE_BEGINNING)
        return [*events, *self.calls.append_args(0, json.dumps(piece.text, ensure_ascii=False)[1:-1])]

    def _stream_call(self, call: Any) -> list[Item]:
        """Translate a delta of a tool call. The argument of `final_answer` becomes text of the answer."""
        name = getattr(call.function, "name", None) or ""
        text = getattr(call.function, "arguments", None)
        if not isinstance(text, str):
            text = ""
        if name == ANSWER and self._answer_key:
            self._answers.setdefault(call.index, StringFieldDecoder(self._answer_key))
        if (answer := self._answers.get(call.index)) is None:
            started = self.calls.stream(call.index, name, call.id or "")
            return [*self._messages.close(), *started, *self.calls.append_args(call.index, text)]
        closed = self._messages.close() if name else []
        self.calls.stream(call.index, ANSWER, "")  # reserves its position in the reply
        return [*closed, *(event for piece in answer.feed(text) for event in self._messages.text(piece.text))]

    def ready_call(self, report: CallReady) -> list[Item]:
        is_code = self._tags and report.name == CODE and isinstance(report.args, str)
        args: Any = {"code": report.args} if is_code else report.args
        return [*self._messages.close(), *self.calls.ready(report, args)]

    # The end

    def answer(self, result: ToolResult) -> list[Item]:
        """Return the final answer of the main agent, with its files.

        The answer has a message id only if it was streamed, as the argument of `final_answer` or at the step limit, and
        the streamed text is exactly the answer.
        """
        closed = self._messages.close()
        answer = final_answer(result.value, self._messages.last_id)
        if answer.content != self._messages.last_text:
            answer = msgspec.structs.replace(answer, message_id=None)
        return [*closed, *result.files, answer]
