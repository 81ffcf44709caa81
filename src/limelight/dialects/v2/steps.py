"""Writes the v2 messages at the beginning (header) and end (footer) of an agent's steps and plans.

Some frameworks report steps. For others (and plain functions), steps are implicit: a step is a text and the tool calls
that follow it. A plan always has a header and a footer, whether it is a planning step, inside of an action step or
outside of steps.
"""

import msgspec

from limelight.dialects.v2.message_writer import MessageWriter, Metadata, cost, error_type, footer_line, step_number
from limelight.dialects.v2.previews import preview
from limelight.dialects.v2.text_stream import TextStream
from limelight.events import Plan, PlanDelta, StepFinished, StepStarted, Usage

SEPARATOR = "-----"


class Steps:
    """Writes the header and footer of one agent's steps, and numbers the messages in them."""

    def __init__(self, writer: MessageWriter, agent_id: str) -> None:
        self._writer = writer
        self._agent_id = agent_id
        self._plans = Plans(writer, agent_id)
        self._framework_has_steps = False
        self._is_implicit = False
        self._has_tool_calls = False
        """Whether tools were called since the current step began, if the framework does not report steps."""
        self._open_calls = 0
        self._open_kind = ""
        """The kind of the open step; "" if none is open."""
        self._pending_end: StepFinished | None = None
        """The event that ended the open step, until the step's footer is written."""
        self._input_tokens: int | None = None
        self._output_tokens: int | None = None
        self.number: int | None = None

    @property
    def metadata(self) -> Metadata:
        """The metadata keys that every message in an action step has."""
        return {"step_type": "action", **step_number(self.number)}

    def start(self, event: StepStarted) -> None:
        """Write the header of a step that the framework reports."""
        self.close()
        self._framework_has_steps, self._is_implicit = True, False
        if event.step_kind == "planning":
            self.number, self._open_kind = event.number, "planning"
            self._plans.begin(self.number)
        else:
            self._begin_action(event.number)

    def finish(self, event: StepFinished, *, has_open_text: bool) -> None:
        """End a step that the framework reports.

        The footer is written after an open text of the step. If the step has an error, it is written at the next event,
        which may be the end of the run, with the same error.
        """
        self._pending_end = event
        self._end_plan()
        if not has_open_text and event.error is None:
            self._end_step()

    def finish_pending(self) -> None:
        """Write the footer of a step whose footer had to wait for an open text or an error."""
        if self._pending_end is not None:
            self._end_step()

    def drop_repeated_error(self, message: str) -> None:
        """Discard the error of a failed step if the agent or the run fails with the same message, to show it once."""
        if self._pending_end is not None and self._pending_end.error == message:
            self._pending_end = msgspec.structs.replace(self._pending_end, error=None)

    def begin_text(self) -> None:
        """Prepare for a text; after tool calls, it begins a new step if the framework does not report steps."""
        self.finish_pending()
        if self._framework_has_steps or self._open_kind:
            if not (self._is_implicit and self._has_tool_calls) or self._open_calls:
                return
            self._end_step()
        self._begin_implicit_step()

    def begin_tool_call(self) -> None:
        """Prepare for a tool call; it begins a step if none is open."""
        self.finish_pending()
        if not self._framework_has_steps and not self._open_kind:
            self._begin_implicit_step()
        self._has_tool_calls = True
        self._open_calls += 1

    def end_tool_call(self) -> None:
        self._open_calls -= 1

    def add_usage(self, event: Usage) -> None:
        """Add a model request's tokens to the open step, if the framework does not report steps itself."""
        if self._is_implicit and self._open_kind:
            self._input_tokens = (self._input_tokens or 0) + event.input_tokens
            self._output_tokens = (self._output_tokens or 0) + event.output_tokens

    def plan_fits(self, event: PlanDelta) -> bool:
        """Whether a delta joined from several of the agent's plan fits into the current message."""
        return self._plans.fits(event)

    def append_plan(self, event: PlanDelta) -> None:
        """Write a delta of the agent's plan."""
        self._begin_plan()
        self._plans.append(event)

    def finish_plan(self, event: Plan) -> None:
        """Write a complete plan of the agent, or the rest of a plan that was streamed."""
        self._begin_plan()
        self._plans.finish(event)
        self._end_plan()

    def end_open_plan(self) -> None:
        """End the open plan, because the agent continues with a todo list."""
        self._plans.finish_text()
        self._end_plan()

    def close(self) -> None:
        """End the agent's open plan and open step."""
        self._end_plan()
        self._end_step()

    def _end_step(self) -> None:
        if self._pending_end is not None:
            event, self._pending_end = self._pending_end, None
            self._write_error(event)
            self._write_footer(cost(event.input_tokens, event.output_tokens, event.duration_ms))
        elif self._open_kind:
            self._write_footer(cost(self._input_tokens, self._output_tokens, None) if self._is_implicit else {})

    def _write_error(self, event: StepFinished) -> None:
        """Write the error of a step; if the step was stopped, the end of its agent or run shows the error."""
        if event.error is None or event.outcome == "stopped":
            return
        self._plans.finish_text()
        metadata = {
            "error": True,
            "error_type": error_type(event.error, "StepError"),
            "title": "💥 Error",
            **self.metadata,
            "step_type": self._open_kind or "action",
        }
        self._writer.write("error", event.error, self._agent_id, **metadata)

    def _begin_implicit_step(self) -> None:
        self._is_implicit, self._has_tool_calls = True, False
        self._input_tokens = self._output_tokens = None
        self._begin_action((self.number or 0) + 1)

    def _begin_action(self, number: int) -> None:
        self.number, self._open_kind = number, "action"
        label = self._writer.step_label(self._agent_id, number)
        self._writer.write("action_header", f"**{label}**", self._agent_id, **self.metadata)

    def _begin_plan(self) -> None:
        """Begin a plan outside of a planning step. This ends an open step that the framework did not report."""
        if self._plans.is_open:
            return
        self.finish_pending()
        if self._is_implicit:
            self._end_step()
        self._plans.begin(self.number)

    def _end_plan(self) -> None:
        """End the open plan, unless it belongs to a planning step, with which it ends."""
        if self._plans.is_open and self._open_kind != "planning":
            self._plans.end({})

    def _write_footer(self, metadata: Metadata) -> None:
        kind, self._open_kind = self._open_kind, ""
        if kind == "planning":
            self._plans.end(metadata)
        elif kind:
            label = f"Step {self.number}"
            footer = {**self.metadata, "footer_label": label, "step_name": label, "is_active": False, **metadata}
            line = footer_line(self._writer.step_label(self._agent_id, self.number), metadata)
            self._writer.write("action_footer", line, self._agent_id, **footer)
            self._writer.write("separator", SEPARATOR, self._agent_id, step_type="action", **step_number(self.number))


class Plans:
    """Writes the plans of one agent, each as a header, a text and a footer."""

    def __init__(self, writer: MessageWriter, agent_id: str) -> None:
        self._writer = writer
        self._agent_id = agent_id
        self._count = 0
        self._step: int | None = None
        self._text: TextStream | None = None
        self._pieces: list[str] = []
        self.is_open = False

    def begin(self, step: int | None) -> None:
        """Begin a plan with its `planning_header` message. `step` is the number of the open step, None without one."""
        self.is_open = True
        self._count += 1
        self._step = step
        self._writer.write("planning_header", "", self._agent_id, **self._metadata, is_active=True)
        self._text = self._new_text()

    def fits(self, event: PlanDelta) -> bool:
        """Whether a delta joined from several of the open plan fits into the current message."""
        return self._text is None or self._text.fits(event.text)

    def append(self, event: PlanDelta) -> None:
        """Write a delta of the open plan."""
        self._text = self._text or self._new_text()  # a step may contain several plans
        self._pieces.append(event.text)
        self._text.append(event.text)

    def finish(self, event: Plan) -> None:
        """Write what a complete plan contains beyond the deltas that were sent, and end its text.

        The log truncates long plans. If the deltas have more text than the event, nothing is added.
        """
        written = "".join(self._pieces)
        is_truncated = (event.truncated or not event.text) and written.startswith(event.text)
        if not is_truncated:
            self._write_rest(event.text, written)
        self.finish_text()

    def _write_rest(self, text: str, written: str) -> None:
        if not text.startswith(written):  # the deltas belong to another plan
            self.finish_text()
            written = ""
        self._text = self._text or self._new_text()
        if rest := text[len(written) :]:
            self._text.append(rest)

    def finish_text(self) -> None:
        """End the text of the open plan with the deltas that were written."""
        text, self._text, self._pieces = self._text, None, []
        if text is not None:
            shown = preview(text.first_page)
            text.finish(thoughts_content=shown, content_length=text.length, step_name=self._label)

    def end(self, metadata: Metadata) -> None:
        """Write the footer of the plan, with the step's tokens and duration (`metadata`) as far as they are known."""
        self.finish_text()
        self.is_open = False
        label = self._label
        footer = {**self._metadata, "footer_label": label, "step_name": label, "is_active": False, **metadata}
        self._writer.write("planning_footer", footer_line(label, metadata), self._agent_id, **footer)
        self._writer.write("separator", SEPARATOR, self._agent_id, step_type="planning", **step_number(self._step))

    def _new_text(self) -> TextStream:
        return TextStream(self._writer, "planning_content", self._agent_id, self._metadata)

    @property
    def _metadata(self) -> Metadata:
        kind = "initial" if self._count == 1 else "update"
        return {
            "step_type": "planning",
            **step_number(self._step),
            "planning_type": kind,
            "is_update_plan": kind == "update",
            "planning_step_number": self._count,
            "agent_status": f"{kind}_planning",
        }

    @property
    def _label(self) -> str:
        return "Initial planning step" if self._count == 1 else "Updated planning step"
