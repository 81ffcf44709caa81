"""From Records to SSE bytes in one dialect, with ids that make resuming exact.

A Record may give several frames: the last has the id `seq`, those before it `seq.1`, `seq.2` …; for a Record that was
joined from several, these inner ids count from its first one, because that is where a resume begins to read again.
Every `run_started` begins with a fresh dialect. Pure; streams and the hub's lanes are the callers.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from limelight.deltas import DELTA_TYPES, Joined, join
from limelight.dialects.base import Dialect
from limelight.events import Record, RunStarted


class Frame(NamedTuple):
    """One frame without its framing."""

    cursor: str
    payload: bytes


class SseEncoder:
    """Follows one session's log in one dialect."""

    def __init__(self, make_dialect: Callable[[], Dialect]) -> None:
        self._make_dialect = make_dialect
        self._dialect = make_dialect()
        name = self._dialect.event_name
        self._head = b"\nevent: " + name.encode() + b"\ndata: " if name else b"\ndata: "

    def encode(self, record: Record, first_seq: int | None = None, skip: int = 0) -> bytes:
        """The bytes of one Record's frames, without the first `skip` of them."""
        payloads = self.feed(record)
        if len(payloads) == 1 and not skip:
            return b"id: %d%b%b\n\n" % (record.seq, self._head, payloads[0])
        inner = record.seq if first_seq is None else first_seq
        frames: list[bytes] = []
        for k, payload in enumerate(payloads, start=1):
            if k > skip:
                cursor = b"%d" % record.seq if k == len(payloads) else b"%d.%d" % (inner, k)
                frames.append(b"id: %b%b%b\n\n" % (cursor, self._head, payload))
        return b"".join(frames)

    def catch_up(self, records: Iterable[Record]) -> bytes:
        """The bytes of many Records, neighbouring deltas joined where the dialect allows it."""
        if not self._dialect.joins:
            return b"".join(map(self.encode, records))
        return b"".join(map(self._encode_joined, join(records)))

    def _encode_joined(self, joined: Joined) -> bytes:
        event = joined.record.event
        if len(joined.parts) > 1 and isinstance(event, DELTA_TYPES) and not self._dialect.fits(event):
            return b"".join(map(self.encode, joined.parts))
        return self.encode(joined.record, joined.first_seq)

    def feed(self, record: Record) -> list[bytes]:
        """Let the dialect see a Record, and give its payloads as they are."""
        if isinstance(record.event, RunStarted):
            self._dialect = self._make_dialect()
        return self._dialect.feed(record)

    def unnumbered(self, record: Record) -> bytes:
        """Frames without ids, for what is not in any log."""
        return b"".join(self._head.removeprefix(b"\n") + payload + b"\n\n" for payload in self.feed(record))

    def gap(self, first: int, last: int) -> bytes:
        """The frame that says what is no longer kept; a resume behind it goes on after the gap."""
        return b"id: %d%b%b\n\n" % (last, self._head, self._dialect.gap(first, last))


def frames_in(data: bytes) -> Iterator[Frame]:
    """Numbered frames of an encoder taken apart again, for transports that frame in their own way."""
    for block in data.split(b"\n\n")[:-1]:
        head, _, payload = block.partition(b"\ndata: ")
        yield Frame(head.removeprefix(b"id: ").partition(b"\n")[0].decode(), payload)
