"""The steps of one agent: headers and footers. A framework's own, or made up where it has none."""

import msgspec

from limelight.dialects.v2.message import Metadata, cost, error_type, footer_line, numbered
from limelight.dialects.v2.plans import SEPARATOR, Planning
from limelight.dialects.v2.writer import Outbox
from limelight.events import Plan, PlanDelta, StepFinished, StepStarted, Usage


class Steps:
    """Follows one agent's steps and knows the number that its messages carry."""

    def __init__(self, outbox: Outbox, agent_id: str, *, live: bool) -> None:
        self._outbox = outbox
        self._agent_id = agent_id
        self._planning = Planning(outbox, agent_id, live=live)
        self._framework_has_steps = False
        self._made_up = False
        self._tools_since_text = False
        self._calls = 0
        """Tools that are at work now."""
        self._open = ""
        """The kind of the step that is, if one is."""
        self._ending: StepFinished | None = None
        """How the step ended, if that is not told yet."""
        self._read: int | None = None
        self._written: int | None = None
        self.number: int | None = None

    @property
    def about(self) -> Metadata:
        """What every message of an action carries."""
        return {"step_type": "action", **numbered(self.number)}

    def start(self, event: StepStarted) -> None:
        self.close()
        self._framework_has_steps, self._made_up = True, False
        if event.step_kind == "planning":
            self.number, self._open = event.number, "planning"
            self._planning.begin(self.number)
        else:
            self._begin_action(event.number)

    def finish(self, event: StepFinished, *, later: bool = False) -> None:
        """`later`: something that was said in the step is not told yet, and stands before its end."""
        self._ending = event
        self._end_plan()
        if not later and event.error is None:  # or else the next event says whether that is an error of the step
            self._close_step()

    def excuse(self, reason: str) -> None:
        """The end of what is around it has cut the step off. That is told once, and not as an error of the step."""
        if self._ending is not None and self._ending.error == reason:
            self._ending = msgspec.structs.replace(self._ending, error=None)

    def _tell_end(self, event: StepFinished) -> None:
        known = cost(event.input_tokens, event.output_tokens, event.duration_ms)
        if event.error is not None:
            self._planning.settle()
            failed = {
                "error": True,
                "error_type": error_type(event.error, "StepError"),
                "title": "💥 Error",
                **self.about,
                "step_type": self._open or "action",
            }
            self._outbox.send("error", event.error, self._agent_id, **failed)
        self._end(known)

    def release(self) -> None:
        """All that was said in the step is told."""
        if self._ending is not None:
            self._close_step()

    def speaks(self) -> None:
        """Before a text: where a framework has no steps, a text behind tools begins another one."""
        self.release()
        if self._framework_has_steps or self._open:
            if not (self._made_up and self._tools_since_text) or self._calls:
                return
            self._close_step()
        self._make_up()

    def acts(self) -> None:
        """Before a tool."""
        self.release()
        if not self._framework_has_steps and not self._open:
            self._make_up()
        self._tools_since_text = True
        self._calls += 1

    def acted(self) -> None:
        """Behind a tool."""
        self._calls -= 1

    def pays(self, event: Usage) -> None:
        """What a model cost counts for a step that nobody else counts for."""
        if self._made_up and self._open:
            self._read = (self._read or 0) + event.input_tokens
            self._written = (self._written or 0) + event.output_tokens

    def has_room(self, event: PlanDelta) -> bool:
        return self._planning.has_room(event)

    def grow_plan(self, event: PlanDelta) -> None:
        self._begin_plan()
        self._planning.grow(event)

    def plan(self, event: Plan) -> None:
        self._begin_plan()
        self._planning.take(event)
        self._end_plan()

    def settle_plan(self) -> None:
        """The agent plans otherwise now, with a list."""
        self._planning.settle()
        self._end_plan()

    def close(self) -> None:
        """Whatever is open ends now, without a bill unless it had one."""
        self._end_plan()
        self._close_step()

    def _close_step(self) -> None:
        if self._ending is not None:
            event, self._ending = self._ending, None
            self._tell_end(event)
        elif self._open:
            self._end(cost(self._read, self._written, None) if self._made_up else {})

    def _make_up(self) -> None:
        self._made_up, self._tools_since_text, self._read, self._written = True, False, None, None
        self._begin_action((self.number or 0) + 1)

    def _begin_action(self, number: int) -> None:
        self.number, self._open = number, "action"
        self._outbox.send("action_header", f"**Step {number}**", self._agent_id, **self.about)

    def _begin_plan(self) -> None:
        """A plan outside of a step of its own has header and footer all the same. It ends a step that is made up."""
        if self._planning.is_open:
            return
        self.release()
        if self._made_up:
            self._close_step()
        self._planning.begin(self.number)

    def _end_plan(self) -> None:
        """The one outside of a step of its own, if it is open."""
        if self._planning.is_open and self._open != "planning":
            self._planning.end({})

    def _end(self, known: Metadata) -> None:
        kind, self._open = self._open, ""
        if kind == "planning":
            self._planning.end(known)
        elif kind:
            label = f"Step {self.number}"
            footer = {**self.about, "footer_label": label, "step_name": label, "is_active": False, **known}
            self._outbox.send("action_footer", footer_line(label, known), self._agent_id, **footer)
            self._outbox.send("separator", SEPARATOR, self._agent_id, step_type="action", **numbered(self.number))
