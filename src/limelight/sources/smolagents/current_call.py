"""The calls of one step, as its thread knows them: which call it is that runs now.

smolagents runs a call by name and arguments and does not say which of the calls of a reply it is. The arguments are
the very object of the call, so that is what is looked for; calls that are alike in everything may be swapped.
"""

from threading import Lock
from typing import Any

from limelight.sources.smolagents.observer import Observer


class Calls:
    """The tool calls of a step of one agent."""

    def __init__(self, observer: Observer) -> None:
        self._observer = observer
        self._waiting: list[tuple[int, Any]] = []
        self._lock = Lock()

    def made(self, call: Any) -> int:
        """A call of the model appeared."""
        ticket = self._observer.ticket()
        self._waiting.append((ticket, call))
        return ticket

    def unheard(self, call: Any) -> int:
        """The ticket of a call that has a result, and was not seen to begin; 0 if it was."""
        return next((ticket for ticket, other in self._waiting if other is call), 0)

    def begins(self, name: str, arguments: Any) -> int:
        """The call that is run now; 0 if the model made no such call."""
        with self._lock:
            named = [(ticket, call) for ticket, call in self._waiting if call.name == name]
            same = [(ticket, call) for ticket, call in named if call.arguments is arguments]
            for ticket, call in same or named:
                self._waiting.remove((ticket, call))
                return ticket
        return 0
