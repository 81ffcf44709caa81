"""Many Records in one frame of the socket, for clients that want a long session at once. Pure; `sender.py` calls it."""

from collections.abc import Iterable, Iterator

from limelight.dialects.encoder import Frame
from limelight.dialects.records import JoinedRecordsDialect
from limelight.runs.viewer import Format
from limelight.server.v2.replies import addressed

PACKED = "packed_records"
BATCH = 2048
FRAME_BYTES = 128 * 1024
"""A frame ends before it gets larger, unless it holds one Record only."""
_GAP = b'{"gap":'


def packed_records(root: str = "") -> Format:
    """A format of its own, so that it shares no lane with those who want each Record. It is not a public one."""
    return Format(PACKED, JoinedRecordsDialect, root, BATCH)


def packed(frames: Iterable[Frame], session_id: str) -> Iterator[bytes]:
    """Frames of Records; what is no longer kept is told in a frame of its own, as without packing."""
    payloads: list[bytes] = []
    size, cursor = 0, ""
    for frame in frames:
        is_gap = frame.payload.startswith(_GAP)
        if payloads and (is_gap or size + len(frame.payload) > FRAME_BYTES):
            yield _pack(payloads, cursor, session_id)
            payloads, size = [], 0
        if is_gap:
            yield addressed(frame, session_id)
            continue
        payloads.append(frame.payload)
        size += len(frame.payload)
        cursor = frame.cursor
    if payloads:
        yield _pack(payloads, cursor, session_id)


def single(frames: Iterable[Frame], session_id: str) -> Iterator[bytes]:
    """One frame for each message or Record."""
    return (addressed(frame, session_id) for frame in frames)


def _pack(payloads: list[bytes], cursor: str, session_id: str) -> bytes:
    head = b'{"session_id":"%b","cursor":"%b","records":[' % (session_id.encode(), cursor.encode())
    return b"%b%b]}" % (head, b",".join(payloads))
