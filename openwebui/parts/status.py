"""The line above the text."""

from openwebui.parts.frames import Frame
from openwebui.parts.texts import short
from openwebui.parts.values import Json, as_objects
from openwebui.parts.valves import Choices

STATUSES_AT_ONCE = 5
"""Of more than these, which come together, nobody could read but the last."""


class StatusLine:
    """What goes on now. The last line says how it ended, so that it comes to rest."""

    def __init__(self, choices: Choices) -> None:
        self._subagents = choices.subagent_status
        self._last = ""
        self._before = ""
        """What went on when the connection was lost."""

    def feed(self, frame: Frame) -> list[Json]:
        text = self._line(frame)
        return [] if text in ("", self._last) else [self._status(text, done=False)]

    def end(self, text: str) -> Json:
        return self._status(text, done=True)

    def _status(self, text: str, *, done: bool) -> Json:
        self._last = text
        return {"type": "status", "data": {"description": text, "done": done}}

    def _line(self, frame: Frame) -> str:
        depth = frame.number("depth") or frame.number("agent_depth")
        if depth and not self._subagents:
            return ""
        text = self._text(frame)
        return "↳ " * depth + text if text else ""

    def _text(self, frame: Frame) -> str:
        match frame.type:
            case "status":
                return frame.text("description")
            case "tool_start":
                return f"🔧 {frame.text('name') or 'unknown'}..."
            case "agent_start":
                return f"🤖 Sub-agent: {frame.text('name')}..."
            case "plan":
                return plan_line(as_objects(frame.data.get("items")))
            case "approval" if frame.data.get("state") == "requested":
                return f"⏸ {frame.text('name')} is waiting for approval"
            case "_unanswered":
                return f"⏸ {frame.text('name')} · {frame.text('where')}"
            case "_waiting":
                return "Waiting for the answer of the other model..."
            case "_lost":
                self._before = self._before or self._last
                return f"Connection lost ({frame.text('reason')}), reconnecting..."
            case "_found":
                before, self._before = self._before, ""
                return before
            case _:
                return ""


def plan_line(todos: list[Json]) -> str:
    """How far the list is, and what is being done."""
    if not todos:
        return "📋 Planning..."
    done = sum(todo.get("status") == "completed" for todo in todos)
    now = next((str(todo.get("content", "")) for todo in todos if todo.get("status") == "in_progress"), "")
    return f"📋 {done}/{len(todos)} done" + (f": {short(now)}" if now else "")


def thinned(events: list[Json]) -> list[Json]:
    """Events that came together, with the last status only if there are many: each is a write to the database."""
    places = [place for place, event in enumerate(events) if event["type"] == "status"]
    passed = places[:-1] if len(places) > STATUSES_AT_ONCE else []
    return [event for place, event in enumerate(events) if place not in passed]
