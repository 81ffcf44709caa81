"""Distributes the Records of sessions to the viewers in this process.

A channel exists while a session has viewers. It has one frame buffer for each format: frames are encoded once and
shared by all viewers of the format, each of which has only a position. A buffer has only the newest frames. A viewer
that falls behind reads from the store again, so it does not slow down the run. The committer decides when viewers are
woken. Everything here runs on the event loop; viewers are in `runs/viewer.py`.
"""

import asyncio
from collections import Counter
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

import msgspec

from limelight.dialects.base import Frame
from limelight.dialects.frame_encoder import FrameEncoder
from limelight.events import TERMINAL_TYPES, Record
from limelight.models import SessionRef

BUFFER_RECORDS = 256
BUFFER_BYTES = 256 * 1024
"""Limit for the size of a frame buffer, in bytes."""

T = TypeVar("T")


class FrameBatch(msgspec.Struct, eq=False):
    """Consecutive frames for viewers. A batch that viewers share also caches the bytes that each transport sends."""

    frames: Sequence[Frame]
    is_shared: bool = False
    _encoded: dict[Callable[[Sequence[Frame]], Any], Any] = {}

    def __bool__(self) -> bool:
        return bool(self.frames)

    def encoded(self, framing: Callable[[Sequence[Frame]], T]) -> T:
        """Return what a transport sends for the frames, encoded by `framing`. Cached if viewers share the batch."""
        if not self.is_shared:
            return framing(self.frames)
        try:
            return self._encoded[framing]
        except KeyError:
            encoded = self._encoded[framing] = framing(self.frames)
            return encoded

    @property
    def size(self) -> int:
        """The number of bytes in all payloads of the batch."""
        return sum([len(frame.payload) for frame in self.frames])


class FrameBuffer:
    """The newest frames of one session in one format. `_frames[i]` are the frames of Record `base + i`."""

    def __init__(self, encoder: FrameEncoder, head: int) -> None:
        self.encoder = encoder
        self.base = head + 1
        self.head = head
        self.ends: list[int] = []
        """The numbers (`seq`) of the buffered Records that end a run."""
        self._frames: list[list[Frame]] = []
        self._sizes: list[int] = []
        self._bytes = 0
        self._batch: tuple[int, int, FrameBatch] = (0, 0, FrameBatch(()))

    def feed(self, records: Sequence[Record], woken_seq: int) -> bool:
        """Encode new Records and add their frames to the buffer, which drops its oldest frames when it is full.

        `woken_seq` is the last Record for which viewers were woken; frames after it are dropped only if they are too
        large. Return False if Records are missing before these, so that the buffer cannot be used.
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
            self._trim(woken_seq)
        return True

    def _trim(self, woken_seq: int) -> None:
        """Drop the frames of the older half of the Records, or of more if the rest is still too large."""
        count = len(self._frames)
        dropped = max(0, min(max(count // 2, count - BUFFER_RECORDS), woken_seq + 1 - self.base))
        while dropped < count and sum(self._sizes[dropped:]) > BUFFER_BYTES:
            dropped += max(1, (count - dropped) // 2)
        self._bytes -= sum(self._sizes[:dropped])
        del self._frames[:dropped], self._sizes[:dropped]
        self.base += dropped
        self.ends = [seq for seq in self.ends if seq >= self.base]

    def end_after(self, seq: int) -> int | None:
        """Return the number of the first buffered Record after `seq` that ends a run; None if there is none."""
        return next((end for end in self.ends if end > seq), None)

    def since(self, seq: int, until: int) -> FrameBatch:
        """Return the frames of Records `seq` + 1 … `until`. Viewers at the same position get the same object."""
        if self._batch[:2] != (seq, until):
            parts = self._frames[seq + 1 - self.base : until + 1 - self.base]
            self._batch = (seq, until, FrameBatch([frame for part in parts for frame in part], is_shared=True))
        return self._batch[2]


class Channel:
    """The viewers of one session in this process, with a frame buffer for each format."""

    def __init__(self) -> None:
        self.buffers: dict[str, FrameBuffer] = {}
        self.published = 0
        """Number of the newest Record that was published since the channel was created."""
        self.viewers = 0
        self.deleted = False
        """Whether the session was deleted."""
        self.woken_seq = 0
        """Number of the newest Record for which viewers were woken."""
        self._waiting: list[asyncio.Future[None]] = []
        self._watchers: dict[str, int] = {}

    def wake(self) -> None:
        """Wake all waiting viewers, so that they read the published Records."""
        self.woken_seq = self.published
        waiting, self._waiting = self._waiting, []
        for future in waiting:
            if not future.done():
                future.set_result(None)

    def wait(self) -> asyncio.Future[None]:
        """Return a future that is done when `wake` is called."""
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        if len(self._waiting) > 2 * self.viewers:  # futures that a heartbeat has ended are still in the list
            self._waiting = [waiting for waiting in self._waiting if not waiting.done()]
        self._waiting.append(future)
        return future

    def enter(self, format_: str) -> None:
        self.viewers += 1
        self._watchers[format_] = self._watchers.get(format_, 0) + 1

    def leave(self, format_: str) -> None:
        self.viewers -= 1
        self._watchers[format_] -= 1
        if not self._watchers[format_]:  # the format has no viewers left
            self.buffers.pop(format_, None)


class Hub:
    """The channels of all sessions with viewers in this process."""

    def __init__(self) -> None:
        self._channels: dict[SessionRef, Channel] = {}
        self._owners: Counter[str] = Counter()

    def publish(self, ref: SessionRef, records: Sequence[Record]) -> None:
        """Encode committed Records of a session once for each format that has viewers, into its frame buffer.

        The viewers read the buffers when `wake` is called. The Records of a session must come in order.
        """
        channel = self._channels.get(ref)
        if channel is None or not records:
            return
        channel.published = max(channel.published, records[-1].seq)
        for name, buffer in list(channel.buffers.items()):
            if not buffer.feed(records, channel.woken_seq):
                del channel.buffers[name]

    def wake(self, ref: SessionRef) -> None:
        """Wake the viewers of a session, so that they read the published Records."""
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
    def reserve_viewer(self, owner: str) -> Generator[None]:
        """Count one more viewer of an owner during a `with` block, in which a stream is opened or a request waits."""
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
        """End the streams of all viewers of a deleted session. A new session with the same id gets a new channel."""
        channel = self._channels.pop(ref, None)
        if channel is not None:
            channel.deleted = True
            channel.wake()

    def viewers_of(self, owner: str) -> int:
        """Return the number of streams and sockets that an owner has open in this process, or will open soon."""
        return self._owners[owner]

    @property
    def viewers(self) -> int:
        return sum(channel.viewers for channel in self._channels.values())
