"""One WebSocket connection: opened with the caller's key and name, spoken on, heard, closed.

It knows the `websockets` package, which is loaded when the first one is opened, and nothing of sessions. A refused
handshake is the same error as over HTTP; everything that a new connection might mend is a Cut. `Socket` is the caller.
"""

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

import httpx

from limelight.client.errors import refusal
from limelight.client.transport import Wire

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from websockets.asyncio.client import ClientConnection

CLOSE_SECONDS = 2


class Cut(Exception):
    """The connection is gone. `code` is the one with which it was closed, 1006 if it was just cut."""

    def __init__(self, why: str, code: int = 1006) -> None:
        super().__init__(why)
        self.code = code


class Unreachable(Cut):
    """There never was one."""


class Link:
    """Raises nothing but Cut. Silence counts while we listen, so a slow reader does not cut itself off."""

    def __init__(self, connection: "ClientConnection", silence: float) -> None:
        from websockets.exceptions import ConnectionClosed

        self._connection = connection
        self._closed = ConnectionClosed
        self._patience = silence / 2
        self._pong: Awaitable[float] | None = None

    async def say(self, *frames: bytes) -> None:
        try:
            for frame in frames:
                await self._connection.send(frame, text=True)
        except self._closed as error:
            raise _cut(error) from error

    async def hear(self) -> str | bytes:
        """The next frame. In silence we ask whether anybody is there."""
        try:
            while True:
                with suppress(TimeoutError):
                    async with asyncio.timeout(self._patience):
                        return await self._connection.recv()
                if isinstance(self._pong, asyncio.Future) and not self._pong.done():
                    self.abort()
                    raise Cut(f"silence for {2 * self._patience:g} s")
                self._pong = await self._connection.ping()
        except self._closed as error:
            raise _cut(error) from error

    async def close(self) -> None:
        """In good order: what is still on its way here is let go."""
        await asyncio.gather(self._connection.close(), self._drain())

    def abort(self) -> None:
        self._connection.transport.abort()

    async def _drain(self) -> None:
        with suppress(self._closed):
            while True:
                await self._connection.recv()


async def open_link(wire: Wire, path: str, params: Mapping[str, str]) -> Link:
    """Connect. Raises Unreachable, Cut, or what the server says against it."""
    from websockets.asyncio.client import connect
    from websockets.exceptions import InvalidHandshake, InvalidProxy, InvalidStatus, InvalidURI

    if wire.closed:
        raise wire.gone()
    options: dict[str, Any] = {}
    if wire.url.startswith("https://"):
        options["ssl"] = httpx.create_ssl_context()
    try:
        connecting = connect(
            _address(wire, path, params),
            additional_headers=wire.headers,
            compression=None,
            proxy=True if wire.trusts_environment else None,
            open_timeout=wire.timeout,
            close_timeout=CLOSE_SECONDS,
            ping_interval=None,
            max_size=None,
            **options,
        )
        connecting.process_redirect = lambda exc: exc  # an API key goes nowhere but where it was sent
        return Link(await connecting, wire.timeout)
    except (InvalidURI, InvalidProxy, ValueError) as error:
        raise wire.no_address(error) from error
    except InvalidStatus as error:
        if error.response.status_code < 400:
            raise wire.foreign(f"{path} is no socket there") from error
        raise refusal(error.response.status_code, bytes(error.response.body or b"")) from error
    except (InvalidHandshake, EOFError) as error:
        raise Cut(str(error.__cause__ or error)) from error
    except OSError as error:
        raise Unreachable(str(error)) from error


def _address(wire: Wire, path: str, params: Mapping[str, str]) -> str:
    scheme, separator, rest = wire.url.partition("://")
    if not separator or scheme not in ("http", "https"):
        raise wire.no_address()
    return f"{scheme.replace('http', 'ws')}://{rest}{path}?{urlencode(params)}"


def _cut(error: Any) -> Cut:
    close = error.rcvd
    return Cut(str(error), 1006 if close is None else close.code)
