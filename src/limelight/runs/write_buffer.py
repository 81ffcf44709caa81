"""What a run has said and the log does not have yet: Records in their order, each with its number.

While the log is busy with what came before, a text that goes on grows in its newest Record, so that a rush of small
pieces becomes as many Records as there are commits. What comes slowly has a Record for each piece. It must not know who
commits, or when.
"""

from collections import deque
from collections.abc import Iterable

from limelight.deltas import MAX_DELTA
from limelight.events import AnyEvent, ReasoningDelta, Record, TextDelta
from limelight.ids import now_ms

Speech = TextDelta | ReasoningDelta

MAX_GROWN = MAX_DELTA // 6
"""Characters that one Record grows to; as JSON a character takes six bytes at most."""


class Backlog:
    """The engine puts events in; the committer's `take` empties it."""

    def __init__(self, run_id: str, last_seq: int, at: int) -> None:
        self.uncommitted = 0
        """Events that were put in and are not in the log yet, those that were taken too."""
        self._run_id = run_id
        self._seq = last_seq
        self._at = at
        self._records: list[Record] = []
        self._taken: deque[int] = deque()
        self._waiting = 0
        self._speech: Speech | None = None
        """The newest event, if it may still grow by `_pieces`."""
        self._pieces: list[str] = []
        self._room = 0

    def __bool__(self) -> bool:
        return bool(self._records)

    def not_before(self, at: int) -> None:
        self._at = max(self._at, at)

    def add(self, events: Iterable[AnyEvent]) -> None:
        self._settle()
        self._at = max(self._at, now_ms())  # a clock that jumps back does not make the log go back
        for event in events:
            self._append(event)
            self._waiting += 1
            self.uncommitted += 1

    def say(self, event: Speech) -> None:
        """One more plain piece of an open text or thought."""
        self._waiting += 1
        self.uncommitted += 1
        newest, size = self._speech, len(event.text)
        if (
            newest is not None
            and newest.message_id == event.message_id
            and type(newest) is type(event)
            and self._room >= size
        ):
            self._pieces.append(event.text)
            self._room -= size
            return
        self._settle()
        self._at = max(self._at, now_ms())
        self._append(event)
        self._speech, self._pieces, self._room = event, [event.text], MAX_GROWN - size

    def take(self) -> list[Record]:
        """All Records, for a commit; `committed` is to follow once for each call."""
        self._settle()
        records, self._records = self._records, []
        self._taken.append(self._waiting)
        self._waiting = 0
        return records

    def committed(self) -> None:
        """What was taken first is in the log."""
        self.uncommitted -= self._taken.popleft()

    def _append(self, event: AnyEvent) -> None:
        self._seq += 1
        self._records.append(Record(self._seq, self._run_id, self._at, event))

    def _settle(self) -> None:
        """Nothing grows any more that has something behind it, or that is taken away."""
        speech = self._speech
        if speech is None:
            return
        self._speech = None
        if len(self._pieces) > 1:
            grown = type(speech)(agent_id=speech.agent_id, message_id=speech.message_id, text="".join(self._pieces))
            last = self._records[-1]
            self._records[-1] = Record(last.seq, last.run_id, last.at, grown)
