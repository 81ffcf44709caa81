"""The tool calls of one agent, as Events: begun by the model or by code, run, ended once.

Pure. A call is begun when the model starts to write it, and made when its arguments are whole; the calls of a reply are
made in the order in which they were begun. Calls of `final_answer` are not shown.
"""

from typing import Any

import msgspec

from limelight.events import ToolArgsDelta, ToolFinished, ToolOutputDelta, ToolReady, ToolStarted
from limelight.sources.base import CallIds, Item
from limelight.sources.smolagents.signals import ANSWER, CallEnded, CallMade, CallPrinted
from limelight.sources.values import args_value

NEVER_RAN = "the call was never run"


class CallBook:
    """The calls of a whole run: their ids are unique in it, and known by ticket."""

    def __init__(self) -> None:
        self.ids = CallIds()
        self.by_ticket: dict[int, str] = {}


class OpenCalls:
    """The calls of one agent."""

    def __init__(self, agent_id: str, book: CallBook) -> None:
        self._agent_id = agent_id
        self._book = book
        self._begun: dict[int, str] = {}
        """Calls that the model has begun to write, by their index in the reply; "" is one that is not shown (yet)."""
        self._open: list[str] = []

    def next_reply(self) -> None:
        """What was begun before is past."""
        self._begun = {}

    def has_begun(self, index: int) -> bool:
        """Whether a call with this index in the reply is shown."""
        return bool(self._begun.get(index))

    def begin(self, index: int, name: str, raw_id: str) -> list[Item]:
        """The model writes a call. Without a name it only takes its place among the others."""
        self._begun.setdefault(index, "")
        if not name or name == ANSWER or self._begun[index]:
            return []
        call_id = self._begun[index] = self._book.ids.start(raw_id)
        self._open.append(call_id)
        return [ToolStarted(agent_id=self._agent_id, call_id=call_id, name=name)]

    def write(self, index: int, text: str) -> list[Item]:
        """A piece of the arguments of a call."""
        call_id = self._begun.get(index)
        return [ToolArgsDelta(agent_id=self._agent_id, call_id=call_id, text=text)] if call_id and text else []

    def made(self, signal: CallMade, args: Any) -> list[Item]:
        """The arguments are whole: it runs now."""
        place = None if signal.inner else next(iter(self._begun), None)
        call_id = "" if place is None else self._begun.pop(place)
        if signal.name == ANSWER:
            return self._failed(call_id, NEVER_RAN) if call_id else []
        if call_id:
            self._book.by_ticket[signal.ticket] = call_id
            return [ToolReady(agent_id=self._agent_id, call_id=call_id, args=args_value(args))]
        call_id = self._book.by_ticket[signal.ticket] = self._book.ids.start(signal.raw_id)
        self._open.append(call_id)
        return [ToolStarted(agent_id=self._agent_id, call_id=call_id, name=signal.name, args=args_value(args))]

    def printed(self, signal: CallPrinted) -> list[Item]:
        call_id = self._book.by_ticket.get(signal.ticket, "")
        if call_id not in self._open:
            return []
        return [ToolOutputDelta(agent_id=self._agent_id, call_id=call_id, text=signal.text)]

    def ended(self, signal: CallEnded) -> list[Item]:
        call_id = self._book.by_ticket.get(signal.ticket, "")
        if call_id not in self._open:
            return []
        duration = None if signal.seconds is None else round(signal.seconds * 1000)
        if signal.error is not None:
            return self._failed(call_id, signal.error, duration)
        self._open.remove(call_id)
        result, made = signal.outcome
        files = [msgspec.structs.replace(file, call_id=call_id, agent_id=self._agent_id) for file in made]
        finished = ToolFinished(agent_id=self._agent_id, call_id=call_id, result=result, duration_ms=duration)
        return [*files, finished]

    def close(self, error: str | None) -> list[Item]:
        """The step is over: what is still open has come to nothing. Calls of code are closed before the code."""
        return [item for call_id in reversed(self._open.copy()) for item in self._failed(call_id, error or NEVER_RAN)]

    def _failed(self, call_id: str, error: str, duration: int | None = None) -> list[Item]:
        self._open.remove(call_id)
        told = f"Error: {error}"
        return [ToolFinished(agent_id=self._agent_id, call_id=call_id, result=told, error=error, duration_ms=duration)]
