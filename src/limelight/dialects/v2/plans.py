"""The plans of one agent: a header, the plan as it is written, a footer."""

from limelight.dialects.v2.message import Metadata, beginning, footer_line, numbered
from limelight.dialects.v2.text_stream import Stream
from limelight.dialects.v2.writer import Outbox
from limelight.events import Plan, PlanDelta

SEPARATOR = "-----"


class Planning:
    """Counts the plans, and knows how much of the open one has come."""

    def __init__(self, outbox: Outbox, agent_id: str, *, live: bool) -> None:
        self._outbox = outbox
        self._agent_id = agent_id
        self._live = live
        self._count = 0
        self._number: int | None = None
        self._text: Stream | None = None
        self._written: list[str] = []
        self.is_open = False

    def begin(self, number: int | None) -> None:
        """In this step, if in one."""
        self.is_open = True
        self._count += 1
        self._number = number
        self._outbox.send("planning_header", "", self._agent_id, **self._about, is_active=True)
        self._text = self._new_text()

    def has_room(self, event: PlanDelta) -> bool:
        return self._text is None or self._text.has_room(event.text)

    def grow(self, event: PlanDelta) -> None:
        self._text = self._text or self._new_text()  # a step may plan more than once
        self._written.append(event.text)
        self._text.grow(event.text)

    def take(self, event: Plan) -> None:
        """All of a plan, whether or not pieces came before. Of one that is cut these had more, and that stays."""
        written = "".join(self._written)
        is_cut = (event.truncated or not event.text) and written.startswith(event.text)
        if not is_cut:
            self._complete(event.text, written)
        self.settle()

    def _complete(self, text: str, written: str) -> None:
        if not text.startswith(written):  # another one than it seemed
            self.settle()
            written = ""
        self._text = self._text or self._new_text()
        if rest := text[len(written) :]:
            self._text.grow(rest)

    def settle(self) -> None:
        """What has come is all of the plan."""
        text, self._text, self._written = self._text, None, []
        if text is not None:
            begin = beginning(text.first_page)
            text.end(thoughts_content=begin, content_length=text.length, step_name=self._label)

    def end(self, known: Metadata) -> None:
        """With what the step has cost, as far as that is known."""
        self.settle()
        self.is_open = False
        footer = {**self._about, "footer_label": self._label, "step_name": self._label, "is_active": False, **known}
        self._outbox.send("planning_footer", footer_line(self._label, known), self._agent_id, **footer)
        self._outbox.send("separator", SEPARATOR, self._agent_id, step_type="planning", **numbered(self._number))

    def _new_text(self) -> Stream:
        return Stream(self._outbox, "planning_content", self._agent_id, self._about, live=self._live)

    @property
    def _about(self) -> Metadata:
        kind = "initial" if self._count == 1 else "update"
        return {
            "step_type": "planning",
            **numbered(self._number),
            "planning_type": kind,
            "is_update_plan": kind == "update",
            "planning_step_number": self._count,
            "agent_status": f"{kind}_planning",
        }

    @property
    def _label(self) -> str:
        return "Initial planning step" if self._count == 1 else "Updated planning step"
