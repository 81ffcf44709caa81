"""A WebSocket connection that is authenticated with the caller's key and name.

The `websockets` package is imported when the first connection is opened. This module knows nothing of sessions. A
refused handshake raises the same error as over HTTP; a failure that a new connection may remedy raises Disconnected.
"""

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

import httpx

from limelight.client.errors import error_from_response
from limelight.client.http_transport import Transport

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from websockets.asyncio.client import ClientConnection

CLOSE_SECONDS = 2


class Disconnected(Exception):
    """The error for a closed connection. `code` is the WebSocket close code, 1006 without a close frame."""

    def __init__(self, reason: str, code: int = 1006) -> None:
        super().__init__(reason)
        self.code = code


class ConnectFailed(Disconnected):
    """The error for a TCP connection that could not be opened."""


class Connection:
    """An open WebSocket connection. Its methods raise only Disconnected.

    The timeout counts only while `recv` waits, so that a slow caller does not lose the connection.
    """

    def __init__(self, connection: "ClientConnection", timeout: float) -> None:
        from websockets.exceptions import ConnectionClosed

        self._connection = connection
        self._closed = ConnectionClosed
        self._ping_interval = timeout / 2
        self._pong: Awaitable[float] | None = None

    async def send(self, *frames: bytes) -> None:
        try:
            for frame in frames:
                await self._connection.send(frame, text=True)
        except self._closed as error:
            raise _disconnected(error) from error

    async def recv(self) -> str | bytes:
        """Return the next frame. Sends a ping after half the timeout, and disconnects if no pong arrives."""
        try:
            while True:
                with suppress(TimeoutError):
                    async with asyncio.timeout(self._ping_interval):
                        return await self._connection.recv()
                if isinstance(self._pong, asyncio.Future) and not self._pong.done():
                    self.abort()
                    raise Disconnected(f"silence for {2 * self._ping_interval:g} s")
                self._pong = await self._connection.ping()
        except self._closed as error:
            raise _disconnected(error) from error

    async def close(self) -> None:
        """Close the connection with a close frame. Frames that the server still sends are discarded."""
        await asyncio.gather(self._connection.close(), self._drain())

    def abort(self) -> None:
        self._connection.transport.abort()

    async def _drain(self) -> None:
        with suppress(self._closed):
            while True:
                await self._connection.recv()


async def connect(transport: Transport, path: str, params: Mapping[str, str]) -> Connection:
    """Open a connection. Raises ConnectFailed, Disconnected, or the error of the refused handshake."""
    from websockets.asyncio.client import connect as open_websocket
    from websockets.exceptions import InvalidHandshake, InvalidProxy, InvalidStatus, InvalidURI

    if transport.closed:
        raise transport.client_closed()
    options: dict[str, Any] = {}
    if transport.url.startswith("https://"):
        options["ssl"] = httpx.create_ssl_context()
    try:
        opening = open_websocket(
            _websocket_url(transport, path, params),
            additional_headers=transport.headers,
            compression=None,
            proxy=True if transport.trust_env else None,
            open_timeout=transport.timeout,
            close_timeout=CLOSE_SECONDS,
            ping_interval=None,
            max_size=None,
            **options,
        )
        opening.process_redirect = lambda exc: exc  # the API key must not be sent to another address
        return Connection(await opening, transport.timeout)
    except (InvalidURI, InvalidProxy, ValueError) as error:
        raise transport.invalid_url(error) from error
    except InvalidStatus as error:
        if error.response.status_code < 400:
            raise transport.not_limelight(f"{path} is not a WebSocket there") from error
        raise error_from_response(error.response.status_code, bytes(error.response.body or b"")) from error
    except (InvalidHandshake, EOFError) as error:
        raise Disconnected(str(error.__cause__ or error)) from error
    except OSError as error:
        raise ConnectFailed(str(error)) from error


def _websocket_url(transport: Transport, path: str, params: Mapping[str, str]) -> str:
    scheme, separator, rest = transport.url.partition("://")
    if not separator or scheme not in ("http", "https"):
        raise transport.invalid_url()
    return f"{scheme.replace('http', 'ws')}://{rest}{path}?{urlencode(params)}"


def _disconnected(error: Any) -> Disconnected:
    close_frame = error.rcvd
    return Disconnected(str(error), 1006 if close_frame is None else close_frame.code)
