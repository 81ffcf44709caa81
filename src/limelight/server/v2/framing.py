"""Socket framing: frames of the log as WebSocket text messages, one for each frame or many records in one. Pure."""

from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache

from limelight.dialects.base import Frame, GapFrame
from limelight.dialects.records import JoinedRecordsDialect
from limelight.runs.hub import FrameBatch
from limelight.runs.viewer import Format

PACKED = "packed_records"
BATCH = 2048
MESSAGE_BYTES = 128 * 1024
"""Size at which a message with many records ends. A single record may be larger."""


def packed_records(root: str = "") -> Format:
    """The internal format of `packed=1`. It has its own name, so that it shares no frame buffer with `records`."""
    return Format(PACKED, JoinedRecordsDialect, root, BATCH)


class SocketFraming:
    """Frames in, text messages out. `socket_framing` makes one per session, so that its sockets share the texts."""

    def __init__(self, session_id: str, packed: bool) -> None:
        self.session_id = session_id
        self.packed = packed

    def __call__(self, frames: Sequence[Frame]) -> list[str]:
        return list(self._texts(frames))

    def texts(self, batch: FrameBatch) -> Iterable[str]:
        """The messages of a batch. Those of a replay are made one by one: a client that does not read holds one."""
        return batch.encoded(self) if batch.is_shared else self._texts(batch.frames)

    def _texts(self, frames: Sequence[Frame]) -> Iterator[str]:
        messages = self._packed(frames) if self.packed else (addressed(frame, self.session_id) for frame in frames)
        return (message.decode() for message in messages)

    def _packed(self, frames: Iterable[Frame]) -> Iterator[bytes]:
        """Messages with many records each. A gap has its own message, as without packing."""
        payloads: list[bytes] = []
        size, cursor = 0, ""
        for frame in frames:
            is_gap = isinstance(frame, GapFrame)
            if payloads and (is_gap or size + len(frame.payload) > MESSAGE_BYTES):
                yield self._pack(payloads, cursor)
                payloads, size = [], 0
            if is_gap:
                yield addressed(frame, self.session_id)
                continue
            payloads.append(frame.payload)
            size += len(frame.payload)
            cursor = frame.cursor
        if payloads:
            yield self._pack(payloads, cursor)

    def _pack(self, payloads: list[bytes], cursor: str) -> bytes:
        head = b'{"session_id":"%b","cursor":"%b","records":[' % (self.session_id.encode(), cursor.encode())
        return b"%b%b]}" % (head, b",".join(payloads))


@lru_cache(maxsize=4096)
def socket_framing(session_id: str, *, packed: bool = False) -> SocketFraming:
    return SocketFraming(session_id, packed)


def addressed(frame: Frame, session_id: str) -> bytes:
    """A message of the log with its session and its cursor."""
    return b'{"session_id":"%b","cursor":"%b",%b' % (session_id.encode(), frame.cursor.encode(), frame.payload[1:])
