"""Fans a session's Records out to its viewers in this process.

A channel exists while somebody watches a session. In it each wire format has one lane: frames are encoded once, kept
for a short while, and shared by all its viewers, who only hold a cursor. A viewer that falls behind the lane reads
from the store again, so it costs the run nothing. What comes after a pause is shown at once; while more keeps coming,
viewers are woken at intervals, because a wake-up and a write cost far more than an event. Everything here runs on the
event loop; `runs/viewer.py` is the other half.
"""

import asyncio
from collections import Counter
from collections.abc import Generator, Sequence
from contextlib import contextmanager

from limelight.dialects.encoder import SseEncoder
from limelight.events import TERMINAL_TYPES, Record
from limelight.models import SessionRef

LANE_RECORDS = 256
LANE_BYTES = 256 * 1024
"""How much of a lane is kept for viewers that are a little behind."""
INTERVAL = 0.025
"""Seconds between two wake-ups of a session's viewers while events keep coming: forty a second look like a flow."""
HELD_BACK = 128
"""Records that are not held back any longer."""


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

    def feed(self, records: Sequence[Record], shown: int) -> bool:
        """Take in what is new of a run. False if there is a hole, which makes the lane useless.

        What viewers were not woken for, that is what comes after `shown`, is kept unless it is too large.
        """
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
            self._trim(shown)
        return True

    def _trim(self, shown: int) -> None:
        """Drop the older half, or more if that is still too much, so that this happens rarely."""
        gone = max(0, min(max(len(self._blobs) // 2, len(self._blobs) - LANE_RECORDS), shown + 1 - self.base))
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
        self.over = False
        """True once the session is gone: its viewers have nothing to wait for."""
        self._shown = 0
        """The newest Record that viewers were woken for."""
        self._next_wake = 0.0
        self._waiting: list[asyncio.Future[None]] = []
        self._watchers: dict[str, int] = {}

    def publish(self, records: Sequence[Record]) -> None:
        self.published = max(self.published, records[-1].seq)
        for name in [name for name, lane in self.lanes.items() if not lane.feed(records, self._shown)]:
            del self.lanes[name]
        if isinstance(records[-1].event, TERMINAL_TYPES):
            self._next_wake = 0.0

    @property
    def holds_back(self) -> bool:
        return self.published > self._shown

    def due(self, now: float) -> bool:
        """True if viewers should look now: after a pause, at a run's end, or if much was held back."""
        return now >= self._next_wake or self.published - self._shown >= HELD_BACK

    def wake(self, now: float) -> None:
        self._shown = self.published
        self._next_wake = now + INTERVAL
        waiting, self._waiting = self._waiting, []
        for future in waiting:
            if not future.done():
                future.set_result(None)

    def wait(self) -> asyncio.Future[None]:
        """Resolves when something was published."""
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        if len(self._waiting) > 2 * self.viewers:  # signs of life end waits too, and nobody publishes meanwhile
            self._waiting = [waiting for waiting in self._waiting if not waiting.done()]
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
        self._held_back: set[Channel] = set()
        self._owners: Counter[str] = Counter()

    def publish(self, ref: SessionRef, records: Sequence[Record]) -> None:
        """Called once Records are committed, in order."""
        channel = self._channels.get(ref)
        if channel is None or not records:
            return
        channel.publish(records)
        loop = asyncio.get_running_loop()
        if channel.due(now := loop.time()):
            channel.wake(now)
            return
        if not self._held_back:
            loop.call_later(INTERVAL, self._wake_held_back)
        self._held_back.add(channel)

    def _wake_held_back(self) -> None:
        channels, self._held_back = self._held_back, set()
        now = asyncio.get_running_loop().time()
        for channel in channels:
            if channel.holds_back:
                channel.wake(now)

    def enter(self, ref: SessionRef, format_: str) -> Channel:
        channel = self._channels.get(ref)
        if channel is None:
            channel = self._channels[ref] = Channel()
        channel.enter(format_)
        self._owners[ref.owner] += 1
        return channel

    @contextmanager
    def hold(self, owner: str) -> Generator[None]:
        """A place for a viewer that is about to enter, so that others count it already."""
        self._owners[owner] += 1
        try:
            yield
        finally:
            self._free(owner)

    def _free(self, owner: str) -> None:
        self._owners[owner] -= 1
        if not self._owners[owner]:
            del self._owners[owner]

    def leave(self, ref: SessionRef, channel: Channel, format_: str) -> None:
        channel.leave(format_)
        self._free(ref.owner)
        if not channel.viewers and self._channels.get(ref) is channel:
            del self._channels[ref]

    def forget(self, ref: SessionRef) -> None:
        """The session is gone. Whoever watches it is sent away, and a new one of that name begins with nothing."""
        channel = self._channels.pop(ref, None)
        if channel is not None:
            channel.over = True
            channel.wake(asyncio.get_running_loop().time())

    def viewers_of(self, owner: str) -> int:
        """How many streams and sockets somebody has open here, or is about to have."""
        return self._owners[owner]

    @property
    def viewers(self) -> int:
        return sum(channel.viewers for channel in self._channels.values())
