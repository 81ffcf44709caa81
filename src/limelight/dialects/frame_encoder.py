"""Encodes the Records of a session as frames of one dialect, with cursors at which a client can resume exactly. Pure.

A Record may have several frames: the last has the cursor `seq`, the others have `seq.1`, `seq.2` … If the Record was
joined from several Records, the cursors with a point have the `seq` of the first of these, because a resume reads the
log from there.
"""

from collections.abc import Callable, Iterable

from limelight.deltas import DELTA_TYPES, Joined, join
from limelight.dialects.base import Dialect, Frame, GapFrame
from limelight.events import Record, RunStarted
from limelight.models import Cursor


class FrameEncoder:
    """Encodes the Records of one session as frames. It creates a new dialect object at each `run_started`."""

    def __init__(self, make_dialect: Callable[[], Dialect]) -> None:
        self._make_dialect = make_dialect
        self._dialect = make_dialect()

    def encode(self, record: Record, first_seq: int | None = None, skip: int = 0) -> list[Frame]:
        """Return the frames of one Record, without the first `skip` frames."""
        if isinstance(record.event, RunStarted):
            self._dialect = self._make_dialect()
        payloads = self._dialect.feed(record)
        if len(payloads) == 1 and not skip:
            return [Frame(Cursor(record.seq), payloads[0])]
        inner = record.seq if first_seq is None else first_seq
        last = len(payloads)
        return [
            Frame(Cursor(record.seq) if k == last else Cursor(inner, k), payload)
            for k, payload in enumerate(payloads, start=1)
            if k > skip
        ]

    def catch_up(self, records: Iterable[Record]) -> list[Frame]:
        """Return the frames of many Records, with neighbouring text deltas joined where the dialect allows it."""
        if not self._dialect.joins:
            return [frame for record in records for frame in self.encode(record)]
        return [frame for joined in join(records) for frame in self._encode_joined(joined)]

    def _encode_joined(self, joined: Joined) -> list[Frame]:
        event = joined.record.event
        if len(joined.parts) > 1 and isinstance(event, DELTA_TYPES) and not self._dialect.fits(event):
            return [frame for record in joined.parts for frame in self.encode(record)]
        return self.encode(joined.record, joined.first_seq)

    def feed(self, record: Record) -> list[bytes]:
        """Return the payloads for one Record in the dialect's format, without cursors."""
        return [frame.payload for frame in self.encode(record)]

    def gap(self, first: int, last: int) -> GapFrame:
        """Return the frame which says that Records `first` to `last` were deleted. Its cursor resumes after them."""
        return GapFrame(Cursor(last), self._dialect.gap(first, last))
