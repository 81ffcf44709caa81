"""The status line above the text of an answer, and the task list above the message field."""

from openwebui.parts.frames import Frame, Json, as_objects
from openwebui.parts.text_format import shorten
from openwebui.parts.valves import DisplayOptions

MAX_STATUSES_PER_BATCH = 5
"""Number of statuses in a batch above which only the last one is sent: a user could not read the others."""


class StatusLine:
    """Turns frames into events for the status line. The final event says how the run ended, and stops the animation."""

    def __init__(self, options: DisplayOptions) -> None:
        self._show_subagents = options.subagent_status
        self._last = ""
        self._before_reconnect = ""
        self._open_approvals: dict[str, str] = {}
        """The status of each open approval; "" for those of sub-agents whose status is hidden."""

    def feed(self, frame: Frame) -> list[Json]:
        text = self._status_text(frame)
        return [] if text in ("", self._last) else [self._event(text, done=False)]

    def final_event(self, text: str) -> Json:
        return self._event(text, done=True)

    def _event(self, text: str, *, done: bool) -> Json:
        self._last = text
        return {"type": "status", "data": {"description": text, "done": done}}

    def _status_text(self, frame: Frame) -> str:
        depth = frame.number("depth") or frame.number("agent_depth")
        if frame.type in ("approval", "_unanswered"):
            return self._approval_text(frame, depth)
        return self._indent(self._frame_text(frame), depth)

    def _indent(self, text: str, depth: int) -> str:
        if depth and not self._show_subagents:
            return ""
        return "↳ " * depth + text if text else ""

    def _approval_text(self, frame: Frame, depth: int) -> str:
        """Return the status text of an approval frame: an open approval, or else the decision."""
        approval_id, name, state = frame.text("approval_id"), frame.text("name"), frame.data.get("state")
        if state == "requested":
            self._open_approvals[approval_id] = self._indent(f"⏸ {name} is waiting for approval", depth)
            return self._open_approvals[approval_id]
        if frame.type == "_unanswered":
            if approval_id in self._open_approvals:  # it may have been decided since
                self._open_approvals[approval_id] = f"⏸ {name} · {frame.text('instruction')}"
            return self._open_approvals.get(approval_id, "")
        if not self._open_approvals.pop(approval_id, ""):
            return ""
        others = [text for text in self._open_approvals.values() if text]
        decision = f"🚫 {name} was rejected" if state == "reject" else f"🔧 {name}..."
        return others[-1] if others else "↳ " * depth + decision

    def _frame_text(self, frame: Frame) -> str:
        match frame.type:
            case "status":
                return frame.text("description")
            case "tool_start":
                return f"🔧 {frame.text('name') or 'unknown'}..."
            case "agent_start":
                title = f" · {frame.text('title')}" if frame.text("title") else ""
                return f"🤖 Sub-agent: {frame.text('name')}{title}..."
            case "plan":
                return plan_text(as_objects(frame.data.get("items")))
            case "_queued":
                return "Waiting for the answer of the other model..."
            case "_reconnecting":
                self._before_reconnect = self._before_reconnect or self._last
                return f"Connection lost ({frame.text('reason')}), reconnecting..."
            case "_reconnected":
                text, self._before_reconnect = self._before_reconnect, ""
                return text
            case _:
                return ""


def plan_text(todos: list[Json]) -> str:
    """Return the progress of a plan, with its current item."""
    if not todos:
        return "📋 Planning..."
    done = sum(todo.get("status") == "completed" for todo in todos)
    current = next((str(todo.get("content", "")) for todo in todos if todo.get("status") == "in_progress"), "")
    return f"📋 {done}/{len(todos)} done" + (f": {shorten(current)}" if current else "")


def limit_statuses(events: list[Json]) -> list[Json]:
    """Keep only the last status of a batch that has too many, because Open WebUI writes each status to its database."""
    positions = [index for index, event in enumerate(events) if event["type"] == "status"]
    removed = positions[:-1] if len(positions) > MAX_STATUSES_PER_BATCH else []
    return [event for index, event in enumerate(events) if index not in removed]


class TaskList:
    """Turns plans of the main agent into Open WebUI's task list, which the final event removes."""

    def __init__(self) -> None:
        self._is_shown = False

    def feed(self, frame: Frame) -> list[Json]:
        todos = as_objects(frame.data.get("items")) if frame.type == "plan" and frame.is_main_agent else []
        if not todos:
            return []
        self._is_shown = True
        tasks = [
            {"id": str(number), "content": str(todo.get("content", "")), "status": str(todo.get("status", "pending"))}
            for number, todo in enumerate(todos, 1)
        ]
        return [tasks_event(tasks)]

    def final_event(self) -> Json | None:
        return tasks_event([]) if self._is_shown else None


def tasks_event(tasks: list[dict[str, str]]) -> Json:
    return {"type": "chat:message:tasks", "data": {"tasks": tasks}}
