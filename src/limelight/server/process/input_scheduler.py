"""Divides the time that the event loop spends on parsing client input between the connections.

Without it, each iteration of the event loop would parse the input of hundreds of flooding connections, and all other
tasks would wait. With it, one iteration (a *turn*) parses for at most TURN_SECONDS in total. Small inputs, such as a
Stop, are parsed first. The rest of refused bodies, which is only discarded, comes last, from one connection in each
turn: a connection that has been parsed is read again, so each of them costs more than its time for parsing.
"""

import asyncio
from collections.abc import Callable
from enum import IntEnum
from weakref import WeakKeyDictionary

TURN_SECONDS = 0.004
"""Maximum time for parsing in one iteration of the event loop."""
SLICE_SECONDS = 0.0003
"""Maximum time for which one connection may parse before it is the turn of another one."""
SMALL_INPUT = 4 * 1024
"""Maximum number of buffered bytes with which the input of a connection counts as small."""
Parse = Callable[[], None]


class Priority(IntEnum):
    """The order in which waiting input is parsed: small inputs, large ones, and input that is only discarded."""

    SMALL = 0
    LARGE = 1
    DISCARDED = 2


class InputScheduler:
    """Calls the parsers of the connections of one event loop, in order of priority and within a time limit per turn.

    A connection parses new input at once if `may_parse` allows it. Otherwise it stops reading and adds its function
    `parse` to the queue. The scheduler calls it once; it may add itself again.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._waiting: tuple[dict[Parse, None], ...] = tuple({} for _ in Priority)
        self._turn: asyncio.Handle | None = None
        self._turn_ends_at = 0.0

    def may_parse(self) -> bool:
        """Whether there is time left for parsing in this iteration of the event loop."""
        if self._turn is None:
            self._begin_turn()
        return self._loop.time() < self._turn_ends_at

    def add(self, parse: Parse, priority: Priority) -> None:
        """Queue `parse` to be called once in a later turn, after those of the same priority that were added before."""
        self._waiting[priority][parse] = None
        if self._turn is None:
            self._begin_turn()

    def discard(self, parse: Parse) -> None:
        """Remove `parse` from the queue, because its connection is closed."""
        for waiting in self._waiting:
            waiting.pop(parse, None)

    def is_waiting(self, parse: Parse) -> bool:
        return any(parse in waiting for waiting in self._waiting)

    def _begin_turn(self) -> None:
        """Begin a turn: set its end, and schedule the queued parsers for the next iteration of the event loop."""
        self._turn_ends_at = self._loop.time() + TURN_SECONDS
        self._turn = self._loop.call_soon(self._parse_waiting)

    def _parse_waiting(self) -> None:
        """Call queued parsers until the time of the turn is over, but at least one of each priority.

        Of the connections whose input is discarded, at most one is parsed.
        """
        self._turn = None
        if not any(self._waiting):
            return
        self._begin_turn()
        for priority, waiting in enumerate(self._waiting):
            for count in range(1 if priority == Priority.DISCARDED else len(waiting)):
                if count and self._loop.time() >= self._turn_ends_at:
                    break
                parse = next(iter(waiting), None)
                if parse is None:
                    break
                del waiting[parse]
                parse()


_schedulers: WeakKeyDictionary[asyncio.AbstractEventLoop, InputScheduler] = WeakKeyDictionary()


def scheduler_of(loop: asyncio.AbstractEventLoop) -> InputScheduler:
    """Return the scheduler that all connections of an event loop share."""
    scheduler = _schedulers.get(loop)
    if scheduler is None:
        scheduler = _schedulers[loop] = InputScheduler(loop)
    return scheduler


def priority_of(buffered: int, *, is_discarded: bool = False) -> Priority:
    """Return the priority for a connection with `buffered` bytes of unparsed input."""
    if is_discarded:
        return Priority.DISCARDED
    return Priority.SMALL if buffered <= SMALL_INPUT else Priority.LARGE
