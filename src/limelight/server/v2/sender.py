"""The way out of a socket, which its two halves share: one frame at a time, and some replies in one piece."""

import asyncio
from collections.abc import Callable, Iterable, Iterator

import msgspec
from starlette.types import Message
from starlette.websockets import WebSocket, WebSocketDisconnect

from limelight.dialects.encoder import Frame
from limelight.server.v2.batching import single
from limelight.server.v2.errors import error_of
from limelight.server.v2.replies import Error, Reply

Dress = Callable[[Iterable[Frame], str], Iterator[bytes]]
"""How frames of the log become frames of the socket."""


class Gone(Exception):
    """Nobody is at the other end any more."""


class Line:
    """Sends; a client that does not read holds up its own socket, and nothing is queued for it."""

    def __init__(self, websocket: WebSocket, session_id: str, refused: Callable[[Exception], None]) -> None:
        self._websocket = websocket
        self._session_id = session_id
        self._refused = refused
        self._lock = asyncio.Lock()
        self.dress: Dress = single

    async def open(self) -> None:
        await self._websocket.receive()
        await self._pass({"type": "websocket.accept"})

    async def tell(self, reply: Reply) -> None:
        async with self._lock:
            await self._send(msgspec.json.encode(reply))

    async def refuse(self, error: Exception, request_id: str = "") -> Error:
        """Tell what is wrong, and whoever counts that too."""
        self._refused(error)
        told = error_of(error, request_id)
        await self.tell(told)
        return told

    async def show(self, frames: Iterable[Frame], end: Reply | None = None) -> None:
        """Messages or Records, with nothing in between."""
        async with self._lock:
            for data in self.dress(frames, self._session_id):
                await self._send(data)
            if end is not None:
                await self._send(msgspec.json.encode(end))

    async def close(self, code: int, reason: str) -> None:
        async with self._lock:
            await self._pass({"type": "websocket.close", "code": code, "reason": reason})

    async def _send(self, data: bytes) -> None:
        await self._pass({"type": "websocket.send", "text": data.decode()})

    async def _pass(self, message: Message) -> None:
        try:
            await self._websocket.send(message)
        except (WebSocketDisconnect, RuntimeError) as error:  # the latter once it is known to be closed
            raise Gone from error
