"""The steps of one agent: headers, plans, footers. A framework's own, or made up where it has none."""

from limelight.dialects.v2.message import Metadata, beginning, cost, error_type, footer_line, numbered
from limelight.dialects.v2.outbox import Outbox
from limelight.dialects.v2.streams import Stream
from limelight.events import Plan, StepFinished, StepStarted, Usage

SEPARATOR = "-----"


class Steps:
    """Follows one agent's steps and knows the number that its messages carry."""

    def __init__(self, outbox: Outbox, agent_id: str, *, live: bool) -> None:
        self._outbox = outbox
        self._agent_id = agent_id
        self._live = live
        self._framework_has_steps = False
        self._made_up = False
        self._tools_since_text = False
        self._plans = 0
        self._plan: Stream | None = None
        self._open = ""
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
        self._framework_has_steps = True
        self.close()
        if event.step_kind == "planning":
            self.number = event.number
            self._begin_plan()
        else:
            self._begin_action(event.number)

    def finish(self, event: StepFinished, *, later: bool = False) -> None:
        """`later`: something that was said in the step is not told yet, and stands before its end."""
        self._ending = event
        if not later:
            self.close()

    def _tell_end(self, event: StepFinished) -> None:
        known = cost(event.input_tokens, event.output_tokens, event.duration_ms)
        if event.error is not None:
            failed = {
                "error": True,
                "error_type": error_type(event.error, "StepError"),
                "title": "💥 Error",
                **self.about,
            }
            self._outbox.send("error", event.error, self._agent_id, **failed)
        self._end(known)

    def release(self) -> None:
        """All that was said in the step is told."""
        if self._ending is not None:
            self.close()

    def speaks(self) -> None:
        """Before a text: where a framework has no steps, a text behind tools begins another one."""
        if self._framework_has_steps or self._open:
            if not (self._made_up and self._tools_since_text):
                return
            self.close()
        self._make_up()

    def acts(self) -> None:
        """Before a tool."""
        if not self._framework_has_steps and not self._open:
            self._make_up()
        self._tools_since_text = True

    def pays(self, event: Usage) -> None:
        """What a model cost counts for a step that nobody else counts for."""
        if self._made_up and self._open:
            self._read = (self._read or 0) + event.input_tokens
            self._written = (self._written or 0) + event.output_tokens

    def plan(self, event: Plan) -> None:
        alone = self._open != "planning"
        if alone:
            self._begin_plan()
        plan = self._plan = self._plan or self._new_plan()  # a step may plan more than once
        plan.grow(event.text)
        self._end_plan()
        if alone:
            self._end_with_footer(self._plan_label, "planning", {})

    def close(self) -> None:
        """Whatever is open ends now, without a bill unless it had one."""
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
        self._open = "planning"
        self._plans += 1
        about = self._about_plan
        self._outbox.send("planning_header", "", self._agent_id, **about, is_active=True)
        self._plan = self._new_plan()

    def _new_plan(self) -> Stream:
        return Stream(self._outbox, "planning_content", self._agent_id, self._about_plan, live=self._live)

    @property
    def _about_plan(self) -> Metadata:
        kind = "initial" if self._plans == 1 else "update"
        return {
            "step_type": "planning",
            **numbered(self.number),
            "planning_type": kind,
            "is_update_plan": kind == "update",
            "planning_step_number": self._plans,
            "agent_status": f"{kind}_planning",
        }

    @property
    def _plan_label(self) -> str:
        return "Initial planning step" if self._plans == 1 else "Updated planning step"

    def _end_plan(self) -> None:
        if self._plan is not None:
            plan, self._plan = self._plan, None
            begin = beginning(plan.first_page)
            plan.end(thoughts_content=begin, content_length=plan.length, step_name=self._plan_label)

    def _end(self, known: Metadata) -> None:
        if self._open == "planning":
            self._end_plan()
            self._end_with_footer(self._plan_label, "planning", known)
        elif self._open:
            self._end_with_footer(f"Step {self.number}", "action", known)

    def _end_with_footer(self, label: str, kind: str, known: Metadata) -> None:
        self._open = ""
        about = self._about_plan if kind == "planning" else self.about
        footer = {**about, "footer_label": label, "step_name": label, "is_active": False, **known}
        self._outbox.send(f"{kind}_footer", footer_line(label, known), self._agent_id, **footer)
        self._outbox.send("separator", SEPARATOR, self._agent_id, step_type=kind, **numbered(self.number))
