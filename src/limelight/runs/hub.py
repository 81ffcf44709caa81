"""Fans a session's Records out to its viewers in this process.

A channel exists while somebody watches a session. In it each wire format has one lane: frames are encoded once, kept
for a short while, and shared by all its viewers, who only hold a cursor. A viewer that falls behind the lane reads
from the store again, so it costs the run nothing. Everything here runs on the event loop; `runs/viewer.py` is the
other half.
"""

import asyncio
from collections.abc import Sequence

from limelight.dialects.encoder import SseEncoder
from limelight.events import TERMINAL_TYPES, Record
from limelight.stores.base import SessionRef

LANE_RECORDS = 256
LANE_BYTES = 256 * 1024
"""How much of a lane is kept for viewers that are a little behind."""


class Lane:
    """One format's newest frames: `blobs[i]` are the bytes of Record number `base + i`."""

    def __init__(self, encoder: SseEncoder, head: int) -> None:
        self.encoder = encoder
        self.base = head + 1
        self.head = head
        self.ends: list[int] = []
        """Where runs ended."""
        self._blobs: list[bytes] = []
        self._bytes = 0
        self._slice: tuple[int, int, bytes] = (0, 0, b"")

    def feed(self, records: Sequence[Record]) -> bool:
        """Take in what is new. False if there is a hole, which makes the lane useless."""
        for record in records:
            if record.seq <= self.head:
                continue
            if record.seq != self.head + 1:
                return False
            blob = self.encoder.encode(record)
            self._blobs.append(blob)
            self._bytes += len(blob)
            self.head += 1
            if isinstance(record.event, TERMINAL_TYPES):
                self.ends.append(record.seq)
        if len(self._blobs) > LANE_RECORDS or self._bytes > LANE_BYTES:
            self._trim()
        return True

    def _trim(self) -> None:
        """Drop the older half, so that this happens rarely."""
        gone = max(1, len(self._blobs) // 2)
        while gone < len(self._blobs) and sum(map(len, self._blobs[gone:])) > LANE_BYTES:
            gone += max(1, (len(self._blobs) - gone) // 2)
        self._bytes -= sum(map(len, self._blobs[:gone]))
        del self._blobs[:gone]
        self.base += gone
        self.ends = [seq for seq in self.ends if seq >= self.base]

    def end_after(self, seq: int) -> int | None:
        """The first end of a run behind `seq`."""
        return next((end for end in self.ends if end > seq), None)

    def since(self, seq: int, until: int) -> bytes:
        """The bytes of Records `seq` + 1 … `until`. Viewers that are side by side get the same object."""
        if self._slice[:2] != (seq, until):
            start = seq + 1 - self.base
            self._slice = (seq, until, b"".join(self._blobs[start : until + 1 - self.base]))
        return self._slice[2]


class Channel:
    """All who watch one session here."""

    def __init__(self) -> None:
        self.lanes: dict[str, Lane] = {}
        self.published = 0
        """The newest Record that was published since the channel is there."""
        self.viewers = 0
        self._waiting: list[asyncio.Future[None]] = []
        self._watchers: dict[str, int] = {}

    def publish(self, records: Sequence[Record]) -> None:
        self.published = max(self.published, records[-1].seq)
        for name in [name for name, lane in self.lanes.items() if not lane.feed(records)]:
            del self.lanes[name]
        self.wake()

    def wake(self) -> None:
        waiting, self._waiting = self._waiting, []
        for future in waiting:
            if not future.done():
                future.set_result(None)

    def wait(self) -> asyncio.Future[None]:
        """Resolves when something was published."""
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(future)
        return future

    def enter(self, format_: str) -> None:
        self.viewers += 1
        self._watchers[format_] = self._watchers.get(format_, 0) + 1

    def leave(self, format_: str) -> None:
        self.viewers -= 1
        self._watchers[format_] -= 1
        if not self._watchers[format_]:  # nobody reads this format any more, so nobody needs to write it
            self.lanes.pop(format_, None)


class Hub:
    """The channels of this process."""

    def __init__(self) -> None:
        self._channels: dict[SessionRef, Channel] = {}

    def publish(self, ref: SessionRef, records: Sequence[Record]) -> None:
        """Called once Records are committed, in order."""
        channel = self._channels.get(ref)
        if channel is not None and records:
            channel.publish(records)

    def enter(self, ref: SessionRef, format_: str) -> Channel:
        channel = self._channels.get(ref)
        if channel is None:
            channel = self._channels[ref] = Channel()
        channel.enter(format_)
        return channel

    def leave(self, ref: SessionRef, format_: str) -> None:
        channel = self._channels[ref]
        channel.leave(format_)
        if not channel.viewers:
            del self._channels[ref]

    @property
    def viewers(self) -> int:
        return sum(channel.viewers for channel in self._channels.values())

    def wake_all(self) -> None:
        """Let every viewer look again, e.g. because the server is going away."""
        for channel in self._channels.values():
            channel.wake()
