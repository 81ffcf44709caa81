"""Assigns unique call ids, and creates the events of a tool call from its start to its result. Pure.

Each source decides which items of its framework's stream belong to which call.
"""

from collections.abc import Iterable, Sequence
from typing import Any

from limelight.events import (
    AnyEvent,
    JsonValue,
    Outcome,
    ToolArgsDelta,
    ToolFinished,
    ToolOutputDelta,
    ToolReady,
    ToolStarted,
)
from limelight.grammar import parse_args, unseen_result
from limelight.sources.base import FileMade, Item


class UniqueIds:
    """Generates ids that are unique within a run: a name, followed by a number from its second use on (`name-2`)."""

    def __init__(self) -> None:
        self._used: set[str] = set()

    def reserve(self, used: Iterable[str]) -> None:
        """Mark ids as used that were assigned earlier, such as those of a resumed run."""
        self._used.update(used)

    def assign(self, name: str) -> str:
        assigned, number = name, 1
        while assigned in self._used:
            number += 1
            assigned = f"{name}-{number}"
        self._used.add(assigned)
        return assigned


class CallIds(UniqueIds):
    """Generates unique, non-empty call ids for one run, because some frameworks repeat or omit call ids.

    A raw id is a call id of the framework. If several open calls have the same raw id, it means the oldest of them.
    """

    def __init__(self) -> None:
        super().__init__()
        self._open: dict[str, list[str]] = {}

    def start(self, raw_id: str) -> str:
        """Return a new unique call id for a call with this call id of the framework."""
        call_id = self.assign(raw_id or "call")
        self._open.setdefault(raw_id, []).append(call_id)
        return call_id

    def find(self, raw_id: str) -> str:
        """Return the unique id of the open call with this id of the framework; the framework's id if none is open."""
        return next(iter(self._open.get(raw_id, ())), raw_id)

    def finish(self, raw_id: str) -> str:
        """Mark the open call with this id of the framework as ended, and return its unique id, as `find` does."""
        call_id = self.find(raw_id)
        if call_id in self._open.get(raw_id, ()):
            self._open[raw_id].remove(call_id)
        return call_id


class ToolCall:
    """The state of one tool call. Its methods return the events of each change; once the call has ended, none."""

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
        """The arguments or, while they are streamed, what can be parsed from the text received so far."""
        return parse_args(self.args_text or "{}") if self.args is None else self.args

    def start(self) -> list[AnyEvent]:
        return [ToolStarted(agent_id=self.agent_id, call_id=self.call_id, name=self.name, args=self.args)]

    def append_args(self, text: str) -> list[AnyEvent]:
        """Return the event for a delta of the arguments that the model streams."""
        if not text or self.args is not None or self.finished:
            return []
        self._args_pieces.append(text)
        return [ToolArgsDelta(agent_id=self.agent_id, call_id=self.call_id, text=text)]

    def ready(self, args: dict[str, Any] | str | None = None) -> list[AnyEvent]:
        """Return the event that completes the arguments: with `args`, or with the streamed text if that is None."""
        if self.args is not None or self.finished:
            return []
        self.args = self.known_args if args is None else args
        return [ToolReady(agent_id=self.agent_id, call_id=self.call_id, args=self.args)]

    def output(self, text: str) -> list[AnyEvent]:
        """Return the event for output that the running tool has printed."""
        if self.finished or not text:
            return []
        return [*self.ready(), ToolOutputDelta(agent_id=self.agent_id, call_id=self.call_id, text=text)]

    def finish(
        self,
        result: JsonValue = "",
        *,
        error: str | None = None,
        outcome: Outcome = "",
        duration_ms: int | None = None,
        files: Sequence[FileMade] = (),
    ) -> list[Item]:
        """Return the events that end the call; the engine derives a failed call's missing result from the error."""
        if self.finished:
            return []
        ready = self.ready()
        self.finished = True
        finished = ToolFinished(
            agent_id=self.agent_id,
            call_id=self.call_id,
            result=result,
            error=error,
            outcome=outcome,
            duration_ms=duration_ms,
        )
        return [*ready, *files, finished]

    def finish_unseen(self) -> list[AnyEvent]:
        """Return the events that end a call whose outcome the framework has not reported."""
        if self.finished:
            return []
        ready = self.ready()
        self.finished = True
        return [*ready, unseen_result(self.agent_id, self.call_id)]
