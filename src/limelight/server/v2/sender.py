"""Sends the messages of a socket, for its subscription and for its command handler: one message at a time."""

import asyncio
from collections.abc import Callable

import msgspec
from starlette.types import Message
from starlette.websockets import WebSocket, WebSocketDisconnect

from limelight.runs.hub import FrameBatch
from limelight.server.v2.errors import error_of
from limelight.server.v2.framing import socket_framing
from limelight.server.v2.replies import Error, Reply


class Gone(Exception):
    """Nobody is at the other end any more."""


class Line:
    """Sends; a client that does not read holds up its own socket, and nothing is queued for it."""

    def __init__(self, websocket: WebSocket, session_id: str, refused: Callable[[Exception], None]) -> None:
        self._websocket = websocket
        self._refused = refused
        self._lock = asyncio.Lock()
        self.framing = socket_framing(session_id)

    async def open(self) -> None:
        await self._websocket.receive()
        await self._pass({"type": "websocket.accept"})

    async def tell(self, reply: Reply) -> None:
        async with self._lock:
            await self._send(msgspec.json.encode(reply).decode())

    async def refuse(self, error: Exception, request_id: str = "") -> Error:
        """Tell what is wrong, and whoever counts that too."""
        self._refused(error)
        told = error_of(error, request_id)
        await self.tell(told)
        return told

    async def show(self, batch: FrameBatch, end: Reply | None = None) -> None:
        """Send messages or Records, and a reply after them, with no other message in between."""
        async with self._lock:
            for text in self.framing.texts(batch):
                await self._send(text)
            if end is not None:
                await self._send(msgspec.json.encode(end).decode())

    async def close(self, code: int, reason: str) -> None:
        async with self._lock:
            await self._pass({"type": "websocket.close", "code": code, "reason": reason})

    async def _send(self, text: str) -> None:
        await self._pass({"type": "websocket.send", "text": text})

    async def _pass(self, message: Message) -> None:
        try:
            await self._websocket.send(message)
        except (WebSocketDisconnect, RuntimeError) as error:  # the latter once it is known to be closed
            raise Gone from error
