"""Sending on a socket: the encoding of frames as WebSocket text messages, and a sender that serializes all sends."""

import asyncio
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple

import msgspec
from starlette.types import Message
from starlette.websockets import WebSocket, WebSocketDisconnect

from limelight.dialects.base import Frame, GapFrame
from limelight.dialects.records import JoinedRecordsDialect
from limelight.models import Cursor, SessionRef, User
from limelight.runs.hub import FrameBatch
from limelight.runs.viewer import Format
from limelight.server.runtime import Runtime
from limelight.server.v2.replies import Error, Reply, error_reply

PACKED = "packed_records"
PACKED_BATCH = 2048
MESSAGE_BYTES = 128 * 1024
"""Size limit in bytes of a WebSocket message with several packed Records. A single Record may be larger."""


def packed_records(root: str = "") -> Format:
    """Return the format of sockets with `packed=1`: as `records`, but with neighbouring deltas joined in a replay."""
    return Format(PACKED, JoinedRecordsDialect, root, PACKED_BATCH)


class SocketFraming:
    """Encodes frames of the log as WebSocket text messages.

    `socket_framing` caches one object per session, so that the sockets of the session share the encoded messages.
    """

    def __init__(self, session_id: str, packed: bool) -> None:
        self.session_id = session_id
        self.packed = packed

    def __call__(self, frames: Sequence[Frame]) -> list[str]:
        return list(self._texts(frames))

    def texts(self, batch: FrameBatch) -> Iterable[str]:
        """Return the WebSocket text messages of a batch of frames.

        A batch that several sockets share is encoded once. The batch of a replay belongs to one socket: its messages
        are encoded one at a time while they are sent, so that a slow client holds only one message in memory.
        """
        return batch.encoded(self) if batch.is_shared else self._texts(batch.frames)

    def _texts(self, frames: Sequence[Frame]) -> Iterator[str]:
        messages = self._packed(frames) if self.packed else (message_json(frame, self.session_id) for frame in frames)
        return (message.decode() for message in messages)

    def _packed(self, frames: Iterable[Frame]) -> Iterator[bytes]:
        """Yield WebSocket messages that contain several Records each, for `packed=1`. A gap is a separate message."""
        payloads: list[bytes] = []
        size, cursor = 0, Cursor(0)
        for frame in frames:
            is_gap = isinstance(frame, GapFrame)
            if payloads and (is_gap or size + len(frame.payload) > MESSAGE_BYTES):
                yield self._pack(payloads, cursor)
                payloads, size = [], 0
            if is_gap:
                yield message_json(frame, self.session_id)
                continue
            payloads.append(frame.payload)
            size += len(frame.payload)
            cursor = frame.cursor
        if payloads:
            yield self._pack(payloads, cursor)

    def _pack(self, payloads: list[bytes], cursor: Cursor) -> bytes:
        head = b'{"session_id":"%b","cursor":"%b","records":[' % (self.session_id.encode(), cursor.encode())
        return b"%b%b]}" % (head, b",".join(payloads))


@lru_cache(maxsize=4096)
def socket_framing(session_id: str, *, packed: bool = False) -> SocketFraming:
    return SocketFraming(session_id, packed)


def message_json(frame: Frame, session_id: str) -> bytes:
    """Return the JSON of a frame for clients: its payload with the session id and the cursor added."""
    return b'{"session_id":"%b","cursor":"%b",%b' % (session_id.encode(), frame.cursor.encode(), frame.payload[1:])


class ClientDisconnected(Exception):
    """Raised when a message cannot be sent, because the socket is closed."""


class Sender:
    """Sends messages on a socket, one at a time, for both of its tasks. It waits while the client does not read."""

    def __init__(self, websocket: WebSocket, session_id: str, count_error: Callable[[Exception], None]) -> None:
        self._websocket = websocket
        self._count_error = count_error
        self._lock = asyncio.Lock()
        self.framing = socket_framing(session_id)

    async def accept(self) -> None:
        await self._websocket.receive()
        await self._send({"type": "websocket.accept"})

    async def send(self, reply: Reply) -> None:
        async with self._lock:
            await self._send_text(msgspec.json.encode(reply).decode())

    async def send_error(self, error: Exception, request_id: str = "") -> Error:
        """Send an error frame and return it. The error is counted in the metrics."""
        self._count_error(error)
        reply = error_reply(error, request_id)
        await self.send(reply)
        return reply

    async def send_frames(self, batch: FrameBatch, end: Reply | None = None) -> None:
        """Send frames of the log and then a reply, without other messages in between."""
        async with self._lock:
            for text in self.framing.texts(batch):
                await self._send_text(text)
            if end is not None:
                await self._send_text(msgspec.json.encode(end).decode())

    async def close(self, code: int, reason: str) -> None:
        async with self._lock:
            await self._send({"type": "websocket.close", "code": code, "reason": reason})

    async def _send_text(self, text: str) -> None:
        await self._send({"type": "websocket.send", "text": text})

    async def _send(self, message: Message) -> None:
        try:
            await self._websocket.send(message)
        except (WebSocketDisconnect, RuntimeError) as error:  # Starlette raises RuntimeError after a close
            raise ClientDisconnected from error


class SocketContext(NamedTuple):
    """The objects that the subscription and the command handler of one socket share."""

    runtime: Runtime
    ref: SessionRef
    user: User
    format: Format
    sender: Sender
