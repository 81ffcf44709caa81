"""The line above the text."""

from openwebui.parts.frames import Frame
from openwebui.parts.text import short
from openwebui.parts.types import Json, as_objects
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
        self._waiting: dict[str, str] = {}
        """What was said of each approval that is open; "" of those of sub-agents of which nothing is told."""

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
        if frame.type in ("approval", "_unanswered"):
            return self._approval(frame, depth)
        return self._indented(self._text(frame), depth)

    def _indented(self, text: str, depth: int) -> str:
        if depth and not self._subagents:
            return ""
        return "↳ " * depth + text if text else ""

    def _approval(self, frame: Frame, depth: int) -> str:
        """That it waits. Once it is decided, what else waits, or else what becomes of it."""
        approval_id, name, state = frame.text("approval_id"), frame.text("name"), frame.data.get("state")
        if state == "requested":
            self._waiting[approval_id] = self._indented(f"⏸ {name} is waiting for approval", depth)
            return self._waiting[approval_id]
        if frame.type == "_unanswered":
            if approval_id in self._waiting:  # otherwise it was decided meanwhile
                self._waiting[approval_id] = f"⏸ {name} · {frame.text('where')}"
            return self._waiting.get(approval_id, "")
        if not self._waiting.pop(approval_id, ""):
            return ""
        others = [text for text in self._waiting.values() if text]
        decided = f"🚫 {name} was rejected" if state == "reject" else f"🔧 {name}..."
        return others[-1] if others else "↳ " * depth + decided

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
