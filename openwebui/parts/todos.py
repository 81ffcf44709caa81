"""The agent's list of things to do, as Open WebUI's own task list above the input."""

from openwebui.parts.frames import Frame, is_main
from openwebui.parts.types import Json, as_objects


class Todos:
    """Shown while the agent works. Open WebUI keeps the list for the next turn, so the end takes it away."""

    def __init__(self) -> None:
        self._shown = False

    def feed(self, frame: Frame) -> list[Json]:
        todos = as_objects(frame.data.get("items")) if frame.type == "plan" and is_main(frame) else []
        if not todos:
            return []
        self._shown = True
        tasks = [
            {"id": str(number), "content": str(todo.get("content", "")), "status": str(todo.get("status", "pending"))}
            for number, todo in enumerate(todos, 1)
        ]
        return [tasks_event(tasks)]

    def end(self) -> Json | None:
        return tasks_event([]) if self._shown else None


def tasks_event(tasks: list[dict[str, str]]) -> Json:
    return {"type": "chat:message:tasks", "data": {"tasks": tasks}}
