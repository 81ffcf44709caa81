"""HTTP on one connection, and sockets: uvicorn's, mended where it takes in, leaves hanging or logs what it should not.

`serving.py` uses it. It knows bytes and lines only: what is refused here never becomes a request.
"""

import asyncio
import logging
import socket
from typing import Any

from uvicorn._types import ASGISendEvent
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol

MAX_LINES = 64 * 1024
"""Bytes of headers that may come before their end is seen. uvicorn keeps all of them, and copies them with each piece
that comes, so that everybody else would have to wait."""
HEADER_SECONDS = 20.0
"""How long a request may take until its headers are whole. Who connects and says nothing, or a byte now and then, would
keep a connection for ever."""
TOO_LARGE = f"The headers are over the limit of {MAX_LINES} bytes."
UNREAD_SECONDS = 120
"""How long what was sent may lie around before the connection is given up: its client is gone without a farewell, or
does not read. The system itself waits a quarter of an hour for the one, and for ever for the other. Whoever comes back
resumes where it was."""
_log = logging.getLogger("uvicorn.error.connection")
_log.setLevel(logging.ERROR)
"""Without uvicorn's warnings of what is no HTTP: whoever sends it is told, and could fill a log with them."""


class Connection(HttpToolsProtocol):
    """One connection, until it becomes a socket."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.logger = _log
        self._lines = 0
        """Bytes that came since there was something to work with: the end of headers, or a piece of a body."""
        self._patience: asyncio.TimerHandle | None = None
        """Until the headers have to be whole; None while none are awaited."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # pyright: ignore[reportIncompatibleMethodOverride]
        super().connection_made(transport)
        self._await_headers()
        connection = transport.get_extra_info("socket")
        if connection is not None and hasattr(socket, "TCP_USER_TIMEOUT"):  # Linux has it
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, round(UNREAD_SECONDS * 1000))

    def connection_lost(self, exc: Exception | None) -> None:
        self._have_headers()
        super().connection_lost(exc)

    def _await_headers(self) -> None:
        self._patience = self.loop.call_later(HEADER_SECONDS, self.transport.close)

    def _have_headers(self) -> None:
        if self._patience is not None:
            self._patience.cancel()
            self._patience = None

    def data_received(self, data: bytes) -> None:
        if self._patience is None and getattr(self.cycle, "response_complete", False):
            self._await_headers()  # of one more request on this connection
        self._lines += len(data)
        super().data_received(data)
        if self._lines > MAX_LINES and not self.transport.is_closing():
            self.send_400_response(TOO_LARGE)

    def on_headers_complete(self) -> None:
        """What follows a body in chunks is no header: proxies that say in one who asks do not look there."""
        self._lines = 0
        self._have_headers()
        super().on_headers_complete()
        self.scope["headers"] = list(self.headers)

    def on_body(self, body: bytes) -> None:
        self._lines = 0
        super().on_body(body)

    def on_message_complete(self) -> None:
        self._lines = 0
        super().on_message_complete()

    def handle_websocket_upgrade(self) -> None:
        """A handshake that websockets refuses as HTTP, say for a line that is too long, is told so."""
        super().handle_websocket_upgrade()
        match self.transport.get_protocol():
            case Socket(handshake_initiated=False, conn=refusing):
                self.transport.write(b"".join(refusing.data_to_send()))
                self.transport.close()
            case _:
                pass


class Socket(WebSocketsSansIOProtocol):
    """One socket, from its handshake on."""

    async def send(self, message: ASGISendEvent) -> None:
        """A handshake that is answered with a refusal is over: uvicorn forgets that, and logs an error for each."""
        await super().send(message)
        if self.close_sent:
            self.handshake_complete = True
