"""Tool calls: unique ids, and the events of one call from its first argument piece to its result. Pure.

The sources share this. Which item of a framework's stream belongs to which call is the business of each source.
"""

from collections.abc import Iterable, Sequence
from typing import Any

from limelight.events import AnyEvent, JsonValue, ToolArgsDelta, ToolFinished, ToolOutputDelta, ToolReady, ToolStarted
from limelight.grammar import parse_args, unseen_result
from limelight.sources.base import FileMade, Item


class UniqueIds:
    """Assigns ids that are unique within a run: a name, with a number from its second use on."""

    def __init__(self) -> None:
        self._used: set[str] = set()

    def reserve(self, used: Iterable[str]) -> None:
        """Mark ids as used, which were assigned before this object existed."""
        self._used.update(used)

    def assign(self, name: str) -> str:
        assigned, number = name, 1
        while assigned in self._used:
            number += 1
            assigned = f"{name}-{number}"
        self._used.add(assigned)
        return assigned


class CallIds(UniqueIds):
    """Assigns call ids that are present and unique within a run, because some frameworks repeat or omit them.

    A raw id is the framework's id. If several calls are open under one raw id, it means the oldest, which ends first.
    """

    def __init__(self) -> None:
        super().__init__()
        self._open: dict[str, list[str]] = {}

    def start(self, raw_id: str) -> str:
        """Assign an id to a call that starts."""
        call_id = self.assign(raw_id or "call")
        self._open.setdefault(raw_id, []).append(call_id)
        return call_id

    def find(self, raw_id: str) -> str:
        """Return the id of the open call that a raw id means."""
        return next(iter(self._open.get(raw_id, ())), raw_id)

    def finish(self, raw_id: str) -> str:
        """Return the id of the open call that a raw id means, and close the call."""
        call_id = self.find(raw_id)
        if call_id in self._open.get(raw_id, ()):
            self._open[raw_id].remove(call_id)
        return call_id


class ToolCall:
    """One tool call. Each method returns the events that show a change; after the end there are none."""

    def __init__(self, agent_id: str, call_id: str, name: str, args: dict[str, Any] | str | None = None) -> None:
        """`args` is None if the arguments are still to be streamed."""
        self.agent_id = agent_id
        self.call_id = call_id
        self.name = name
        self.args = args
        self.finished = False
        self._args_pieces: list[str] = []

    @property
    def args_text(self) -> str:
        """The streamed pieces of the arguments."""
        return "".join(self._args_pieces)

    @property
    def known_args(self) -> dict[str, Any] | str:
        """The arguments, parsed from the pieces so far if they are not complete."""
        return parse_args(self.args_text or "{}") if self.args is None else self.args

    def start(self) -> list[AnyEvent]:
        return [ToolStarted(agent_id=self.agent_id, call_id=self.call_id, name=self.name, args=self.args)]

    def append_args(self, text: str) -> list[AnyEvent]:
        """Add a piece of the arguments."""
        if not text or self.args is not None or self.finished:
            return []
        self._args_pieces.append(text)
        return [ToolArgsDelta(agent_id=self.agent_id, call_id=self.call_id, text=text)]

    def ready(self, args: dict[str, Any] | str | None = None) -> list[AnyEvent]:
        """The arguments are complete: the given ones, or else the streamed pieces."""
        if self.args is not None or self.finished:
            return []
        self.args = self.known_args if args is None else args
        return [ToolReady(agent_id=self.agent_id, call_id=self.call_id, args=self.args)]

    def output(self, text: str) -> list[AnyEvent]:
        """The running tool has printed something."""
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
        """End the call. If it has failed and there is no result, the engine derives the result from the error."""
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
