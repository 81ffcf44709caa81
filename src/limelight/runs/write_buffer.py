"""The buffer of a run's events that are not committed yet, as numbered Records.

Consecutive deltas of one text are joined into one Record until the next commit takes it. So a burst of small deltas
needs only one Record per commit, and deltas that come slowly have a Record each. This module must not know who commits,
or when.
"""

from collections import deque
from collections.abc import Iterable

from limelight.deltas import MAX_DELTA
from limelight.events import AnyEvent, ReasoningDelta, Record, TextDelta
from limelight.ids import now_ms

PlainDelta = TextDelta | ReasoningDelta

MAX_JOINED = MAX_DELTA // 6
"""Maximum number of characters of a joined delta. As JSON, a character takes at most six bytes."""


class WriteBuffer:
    """The uncommitted Records of one run. The engine appends events; the committer takes Records."""

    def __init__(self, run_id: str, last_seq: int, at: int) -> None:
        self.uncommitted = 0
        """Number of events that are not committed yet, including those of a commit in progress."""
        self._run_id = run_id
        self._seq = last_seq
        self._at = at
        self._records: list[Record] = []
        self._taken: deque[tuple[int, int]] = deque()
        """The number of events and the last Record of each commit in progress."""
        self.committed_seq = last_seq
        """Number of the last Record that is committed."""
        self._waiting = 0
        self._delta: PlainDelta | None = None
        """The newest event, if more deltas may be joined to it; `_pieces` are its texts."""
        self._pieces: list[str] = []
        self._room = 0

    def __bool__(self) -> bool:
        return bool(self._records)

    def not_before(self, at: int) -> None:
        """Set the earliest time of the Records that follow, so that the times in a log never decrease."""
        self._at = max(self._at, at)

    def append(self, events: Iterable[AnyEvent]) -> None:
        self._finish_delta()
        self._at = max(self._at, now_ms())  # times in the log never decrease, even if the clock is set back
        for event in events:
            self._seq += 1
            self._records.append(Record(self._seq, self._run_id, self._at, event))
            self._waiting += 1
            self.uncommitted += 1

    def append_delta(self, event: PlainDelta) -> None:
        """Append a delta of an open text. It is joined to the newest Record if that is a delta of the same text."""
        self._waiting += 1
        self.uncommitted += 1
        newest, size = self._delta, len(event.text)
        if (
            newest is not None
            and newest.message_id == event.message_id
            and type(newest) is type(event)
            and self._room >= size
        ):
            self._pieces.append(event.text)
            self._room -= size
            return
        self._finish_delta()
        self._at = max(self._at, now_ms())
        self._seq += 1
        self._records.append(Record(self._seq, self._run_id, self._at, event))
        self._delta, self._pieces, self._room = event, [event.text], MAX_JOINED - size

    def take(self) -> list[Record]:
        """Remove all Records from the buffer, and return them to be committed. Call `committed` when they are."""
        self._finish_delta()
        records, self._records = self._records, []
        self._taken.append((self._waiting, self._seq))
        self._waiting = 0
        return records

    def committed(self) -> None:
        """Mark the Records of the oldest commit in progress as committed."""
        count, self.committed_seq = self._taken.popleft()
        self.uncommitted -= count

    def _finish_delta(self) -> None:
        """Put the joined text into the Record of the newest delta, to which no more deltas are joined then."""
        delta = self._delta
        if delta is None:
            return
        self._delta = None
        if len(self._pieces) > 1:
            joined = type(delta)(agent_id=delta.agent_id, message_id=delta.message_id, text="".join(self._pieces))
            last = self._records[-1]
            self._records[-1] = Record(last.seq, last.run_id, last.at, joined)
