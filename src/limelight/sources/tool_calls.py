"""Tool calls: unique call ids, and the events of one call from its start to its result. Pure; shared by the sources.

Each source decides which items of its framework's stream belong to which call.
"""

from collections.abc import Iterable, Sequence
from typing import Any

from limelight.events import AnyEvent, JsonValue, ToolArgsDelta, ToolFinished, ToolOutputDelta, ToolReady, ToolStarted
from limelight.grammar import parse_args, unseen_result
from limelight.sources.base import FileMade, Item


class UniqueIds:
    """Generator of ids that are unique within a run: a name, with a number from its second use on (`name-2`)."""

    def __init__(self) -> None:
        self._used: set[str] = set()

    def reserve(self, used: Iterable[str]) -> None:
        """Mark ids as used that were assigned before, such as those of a resumed run."""
        self._used.update(used)

    def assign(self, name: str) -> str:
        assigned, number = name, 1
        while assigned in self._used:
            number += 1
            assigned = f"{name}-{number}"
        self._used.add(assigned)
        return assigned


class CallIds(UniqueIds):
    """Generator of unique, non-empty call ids for one run, because some frameworks repeat or omit call ids.

    A raw id is the framework's call id. If several calls with one raw id are open, the raw id refers to the oldest.
    """

    def __init__(self) -> None:
        super().__init__()
        self._open: dict[str, list[str]] = {}

    def start(self, raw_id: str) -> str:
        """Assign a call id to a new call."""
        call_id = self.assign(raw_id or "call")
        self._open.setdefault(raw_id, []).append(call_id)
        return call_id

    def find(self, raw_id: str) -> str:
        """Return the call id of the open call with a raw id; the raw id itself if no such call is open."""
        return next(iter(self._open.get(raw_id, ())), raw_id)

    def finish(self, raw_id: str) -> str:
        """Close the open call with a raw id and return its call id; the raw id itself if no such call is open."""
        call_id = self.find(raw_id)
        if call_id in self._open.get(raw_id, ()):
            self._open[raw_id].remove(call_id)
        return call_id


class ToolCall:
    """One tool call. Its methods return the events of each change; after the end of the call they return none."""

    def __init__(self, agent_id: str, call_id: str, name: str, args: dict[str, Any] | str | None = None) -> None:
        """Create a call. `args` is None if the arguments will be streamed."""
        self.agent_id = agent_id
        self.call_id = call_id
        self.name = name
        self.args = args
        self.finished = False
        self._args_pieces: list[str] = []

    @property
    def args_text(self) -> str:
        """The text of the arguments that was streamed so far."""
        return "".join(self._args_pieces)

    @property
    def known_args(self) -> dict[str, Any] | str:
        """The arguments or, while they stream, what can be parsed from the text received so far."""
        return parse_args(self.args_text or "{}") if self.args is None else self.args

    def start(self) -> list[AnyEvent]:
        return [ToolStarted(agent_id=self.agent_id, call_id=self.call_id, name=self.name, args=self.args)]

    def append_args(self, text: str) -> list[AnyEvent]:
        """Append a delta to the streamed arguments."""
        if not text or self.args is not None or self.finished:
            return []
        self._args_pieces.append(text)
        return [ToolArgsDelta(agent_id=self.agent_id, call_id=self.call_id, text=text)]

    def ready(self, args: dict[str, Any] | str | None = None) -> list[AnyEvent]:
        """Mark the arguments as complete. They are `args`, or the streamed text if `args` is None."""
        if self.args is not None or self.finished:
            return []
        self.args = self.known_args if args is None else args
        return [ToolReady(agent_id=self.agent_id, call_id=self.call_id, args=self.args)]

    def output(self, text: str) -> list[AnyEvent]:
        """Add output that the running tool has printed."""
        if self.finished or not text:
            return []
        return [*self.ready(), ToolOutputDelta(agent_id=self.agent_id, call_id=self.call_id, text=text)]

    def finish(
        self,
        result: JsonValue = "",
        *,
        error: str | None = None,
        duration_ms: int | None = None,
        files: Sequence[FileMade] = (),
    ) -> list[Item]:
        """End the call. For a failed call without a result, the engine derives the result from the error."""
        if self.finished:
            return []
        ready = self.ready()
        self.finished = True
        finished = ToolFinished(
            agent_id=self.agent_id, call_id=self.call_id, result=result, error=error, duration_ms=duration_ms
        )
        return [*ready, *files, finished]

    def finish_unseen(self) -> list[AnyEvent]:
        """End a call whose outcome is unknown."""
        if self.finished:
            return []
        ready = self.ready()
        self.finished = True
        return [*ready, unseen_result(self.agent_id, self.call_id)]
