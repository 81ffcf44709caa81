"""The tasks of a team that works by them, as a plan. Pure."""

from typing import Any

from limelight.events import Plan, Todo, TodoStatus
from limelight.sources.base import Item

STATUSES: dict[str, TodoStatus] = {"in_progress": "in_progress", "completed": "completed", "failed": "completed"}
"""Any other is still to do."""


class Tasks:
    """The plan of one agent, as the events about its tasks have it."""

    def __init__(self, agent_id: str) -> None:
        self._agent_id = agent_id
        self._tasks: dict[str, Todo] = {}
        self._told: tuple[Todo, ...] | None = None

    def feed(self, event: Any) -> list[Item]:
        """`tasks` holds all of them, `task_id` names one."""
        for task in getattr(event, "tasks", None) or ():
            self._tasks[task.id] = _todo(task.title, task.status)
        task_id = getattr(event, "task_id", "")
        if task_id:
            known = self._tasks.get(task_id)
            title = event.title or (known.content if known else "")
            self._tasks[task_id] = _todo(title, event.status)
        items = tuple(self._tasks.values())
        if not items or items == self._told:
            return []
        update, self._told = self._told is not None, items
        return [Plan(agent_id=self._agent_id, items=items, update=update)]


def _todo(title: str, status: str) -> Todo:
    return Todo(f"{title} (failed)" if status == "failed" else title, STATUSES.get(status, "pending"))
