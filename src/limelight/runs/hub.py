"""Fans a session's Records out to its viewers in this process.

A channel exists while a session has viewers. In it each format has one frame buffer: frames are encoded once, kept
for a short while, and shared by all viewers of the format, who only hold a position. A viewer that falls behind the
buffer reads from the store again, so it costs the run nothing. The committer decides when viewers are
woken. Everything here runs on the event loop; `runs/viewer.py` is the reading side.
"""

import asyncio
from collections import Counter
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

import msgspec

from limelight.dialects.base import Frame
from limelight.dialects.encoder import FrameEncoder
from limelight.events import TERMINAL_TYPES, Record
from limelight.models import SessionRef

BUFFER_RECORDS = 256
BUFFER_BYTES = 256 * 1024
"""Size of a frame buffer, for viewers that are a little behind."""

T = TypeVar("T")


class FrameBatch(msgspec.Struct, eq=False):
    """Consecutive frames. If viewers share them, it also keeps the encodings that transports have made of them."""

    frames: Sequence[Frame]
    is_shared: bool = False
    _encoded: dict[Callable[[Sequence[Frame]], Any], Any] = {}

    def __bool__(self) -> bool:
        return bool(self.frames)

    def encoded(self, framing: Callable[[Sequence[Frame]], T]) -> T:
        """The frames in a transport's framing. Viewers that share the batch and the framing share the result."""
        if not self.is_shared:
            return framing(self.frames)
        try:
            return self._encoded[framing]
        except KeyError:
            encoded = self._encoded[framing] = framing(self.frames)
            return encoded

    @property
    def size(self) -> int:
        """The bytes of all payloads."""
        return sum([len(frame.payload) for frame in self.frames])


class FrameBuffer:
    """The newest frames of one format: `_frames[i]` belong to Record `base + i`."""

    def __init__(self, encoder: FrameEncoder, head: int) -> None:
        self.encoder = encoder
        self.base = head + 1
        self.head = head
        self.ends: list[int] = []
        """The last Records of runs."""
        self._frames: list[list[Frame]] = []
        self._sizes: list[int] = []
        self._bytes = 0
        self._batch: tuple[int, int, FrameBatch] = (0, 0, FrameBatch(()))

    def feed(self, records: Sequence[Record], shown: int) -> bool:
        """Encode new Records of a run. False if one is missing before them, which makes the buffer useless.

        Records after `shown`, for which viewers were not woken yet, are kept unless they are too large.
        """
        for record in records:
            if record.seq <= self.head:
                continue
            if record.seq != self.head + 1:
                return False
            frames = self.encoder.encode(record)
            size = 0
            for frame in frames:
                size += len(frame.payload)
            self._frames.append(frames)
            self._sizes.append(size)
            self._bytes += size
            self.head += 1
            if isinstance(record.event, TERMINAL_TYPES):
                self.ends.append(record.seq)
        if len(self._frames) > BUFFER_RECORDS or self._bytes > BUFFER_BYTES:
            self._trim(shown)
        return True

    def _trim(self, shown: int) -> None:
        """Drop the older half, or more if that is still too much, so that this happens rarely."""
        count = len(self._frames)
        dropped = max(0, min(max(count // 2, count - BUFFER_RECORDS), shown + 1 - self.base))
        while dropped < count and sum(self._sizes[dropped:]) > BUFFER_BYTES:
            dropped += max(1, (count - dropped) // 2)
        self._bytes -= sum(self._sizes[:dropped])
        del self._frames[:dropped], self._sizes[:dropped]
        self.base += dropped
        self.ends = [seq for seq in self.ends if seq >= self.base]

    def end_after(self, seq: int) -> int | None:
        """The last Record of the first run that ends after `seq`."""
        return next((end for end in self.ends if end > seq), None)

    def since(self, seq: int, until: int) -> FrameBatch:
        """The frames of Records `seq` + 1 … `until`. Viewers at the same position get the same object."""
        if self._batch[:2] != (seq, until):
            parts = self._frames[seq + 1 - self.base : until + 1 - self.base]
            self._batch = (seq, until, FrameBatch([frame for part in parts for frame in part], is_shared=True))
        return self._batch[2]


class Channel:
    """The viewers of one session in this process, with a frame buffer for each format."""

    def __init__(self) -> None:
        self.buffers: dict[str, FrameBuffer] = {}
        self.published = 0
        """The newest Record that was published since the channel exists."""
        self.viewers = 0
        self.deleted = False
        """Whether the session was deleted."""
        self.shown = 0
        """The newest Record for which viewers were woken."""
        self._waiting: list[asyncio.Future[None]] = []
        self._watchers: dict[str, int] = {}

    def wake(self) -> None:
        """Let all viewers read what was published."""
        self.shown = self.published
        waiting, self._waiting = self._waiting, []
        for future in waiting:
            if not future.done():
                future.set_result(None)

    def wait(self) -> asyncio.Future[None]:
        """A future that is done when viewers are woken."""
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        if len(self._waiting) > 2 * self.viewers:  # heartbeats end waits too, without a publication
            self._waiting = [waiting for waiting in self._waiting if not waiting.done()]
        self._waiting.append(future)
        return future

    def enter(self, format_: str) -> None:
        self.viewers += 1
        self._watchers[format_] = self._watchers.get(format_, 0) + 1

    def leave(self, format_: str) -> None:
        self.viewers -= 1
        self._watchers[format_] -= 1
        if not self._watchers[format_]:  # nothing needs to be encoded for it any more
            self.buffers.pop(format_, None)


class Hub:
    """The channels of this process."""

    def __init__(self) -> None:
        self._channels: dict[SessionRef, Channel] = {}
        self._owners: Counter[str] = Counter()

    def publish(self, ref: SessionRef, records: Sequence[Record]) -> None:
        """Encode committed Records for all formats that have viewers. Records come in order."""
        channel = self._channels.get(ref)
        if channel is None or not records:
            return
        channel.published = max(channel.published, records[-1].seq)
        for name, buffer in list(channel.buffers.items()):
            if not buffer.feed(records, channel.shown):
                del channel.buffers[name]

    def wake(self, ref: SessionRef) -> None:
        """Wake the viewers of a session."""
        channel = self._channels.get(ref)
        if channel is not None:
            channel.wake()

    def enter(self, ref: SessionRef, format_: str) -> Channel:
        channel = self._channels.get(ref)
        if channel is None:
            channel = self._channels[ref] = Channel()
        channel.enter(format_)
        self._owners[ref.owner] += 1
        return channel

    @contextmanager
    def hold(self, owner: str) -> Generator[None]:
        """Count a viewer that is about to enter, so that limits include it."""
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
        """End the views of a session that was deleted. A new session with its name starts without them."""
        channel = self._channels.pop(ref, None)
        if channel is not None:
            channel.deleted = True
            channel.wake()

    def viewers_of(self, owner: str) -> int:
        """The streams and sockets that an owner has open here, or is about to open."""
        return self._owners[owner]

    @property
    def viewers(self) -> int:
        return sum(channel.viewers for channel in self._channels.values())
