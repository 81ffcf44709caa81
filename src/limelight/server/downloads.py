"""Downloads of large stored values: read from the store in parts, and sent as fast as the client reads them.

A slow client costs the memory of about one part and of the transport's buffer, whatever the size of the value. Parts
are converted one by one, and stored JSON is sent without decoding it.
"""

import asyncio
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import aclosing
from typing import NamedTuple

import msgspec
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from limelight.errors import NotFound, StoreError
from limelight.models import ArtifactInfo, Run
from limelight.runs.queries import LargeValue
from limelight.server.metrics import Metrics
from limelight.server.request_body import wait_for_disconnect
from limelight.server.response_conversion import Conversion, JsonStringConversion, Utf8Conversion
from limelight.stores.base import Store

log = logging.getLogger(__name__)
PART_BYTES = 256 * 1024
"""Number of bytes of a value that one read of the store returns."""
SEND_BYTES = 64 * 1024
"""Number of bytes of one send. The next send waits until the transport's buffer has room again."""
_encode = msgspec.json.Encoder().encode


# The parts of a response body


class StoredContent:
    """A part of a response body that is read from the store while it is sent.

    `read(offset, size)` returns up to `size` stored bytes from `offset` on, None if the value was deleted. Without a
    `conversion`, the stored bytes are sent unchanged.
    """

    def __init__(
        self,
        size: int,
        read: Callable[[int, int], Awaitable[bytes | None]],
        conversion: Callable[[], Conversion] | None = None,
    ) -> None:
        self._stored_size = size
        self._read = read
        self._conversion = conversion

    async def size(self) -> int:
        """Return the size in bytes as sent. With a conversion, this reads and converts the complete value."""
        if self._conversion is None:
            return self._stored_size
        return sum([len(part) async for part in self.parts()])

    async def parts(self) -> AsyncGenerator[bytes]:
        """Read and convert the value, and yield its parts. Raises NotFound if it is deleted or replaced during this."""
        conversion = None if self._conversion is None else self._conversion()
        offset = 0
        while offset < self._stored_size:
            part = await self._read(offset, PART_BYTES)
            if not part:
                raise NotFound("the value was deleted or replaced while it was read")
            offset += len(part)
            yield part if conversion is None else conversion.feed(part)
        if conversion is not None:
            yield conversion.end()


class MemoryContent(NamedTuple):
    """A part of a response body that is in memory."""

    content: bytes

    async def size(self) -> int:
        return len(self.content)

    async def parts(self) -> AsyncGenerator[bytes]:
        yield self.content


def raw_content(store: Store, run: Run, value: LargeValue) -> StoredContent:
    """Return a stored value as a response body: JSON unchanged, an incomplete text with invalid bytes replaced."""
    return _stored_content(store, run, value, None if value.is_complete else Utf8Conversion)


def json_content(store: Store, run: Run, value: LargeValue) -> StoredContent:
    """Return a stored value as JSON for a response: stored JSON unchanged, a text as a JSON string."""
    return _stored_content(store, run, value, JsonStringConversion if value.is_text else None)


def _stored_content(
    store: Store, run: Run, value: LargeValue, conversion: Callable[[], Conversion] | None
) -> StoredContent:
    async def read(offset: int, size: int) -> bytes | None:
        return await store.result_part(run, value.info, offset, size)

    return StoredContent(value.info.size, read, conversion)


def artifact_content(store: Store, info: ArtifactInfo) -> StoredContent:
    async def read(offset: int, size: int) -> bytes | None:
        return await store.artifact_part(info, offset, size)

    return StoredContent(info.size, read)


Content = StoredContent | MemoryContent


def object_contents(view: msgspec.Struct, large: Mapping[str, StoredContent]) -> list[Content]:
    """Return the JSON of `view` as parts of a response body. The values of fields in `large` come from the store."""
    contents: list[Content] = []
    text = b""
    for number, name in enumerate(view.__struct_fields__):
        text += b"%b%b:" % (b"," if number else b"{", _encode(name))
        if name in large:
            contents += [MemoryContent(text), large[name]]
            text = b""
        else:
            text += _encode(getattr(view, name))
    return [*contents, MemoryContent(text + b"}")]


# The response


async def download(
    contents: Sequence[Content], media_type: str, metrics: Metrics, headers: Mapping[str, str] | None = None
) -> "Download":
    """Return a response whose body consists of these parts. Raises NotFound if a stored one was deleted."""
    size = sum([await content.size() for content in contents])
    return Download(contents, size, media_type, metrics, headers or {})


class Download(Response):
    """A response that reads stored values while it sends them.

    If a value is deleted or cannot be read any more, the response ends before the announced `Content-Length`, and the
    connection is closed. Clients then report an incomplete response.
    """

    def __init__(
        self,
        contents: Sequence[Content],
        size: int,
        media_type: str,
        metrics: Metrics,
        headers: Mapping[str, str],
    ) -> None:
        super().__init__(media_type=media_type, headers={**headers, "content-length": str(size)})
        self._contents = contents
        self._metrics = metrics
        self._is_disconnected = False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        disconnect = asyncio.create_task(self._wait_for_disconnect(receive))
        try:
            await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
            if scope["method"] != "HEAD":
                await self._send_contents(send)
            await send({"type": "http.response.body", "body": b"", "more_body": False})
        except (
            NotFound,
            StoreError,
        ) as error:  # the response has begun; without its end, the server closes the connection
            self._metrics.count_refusal(error)
            log.warning("a download was broken off: %s", error.detail)
        finally:
            disconnect.cancel()

    async def _send_contents(self, send: Send) -> None:
        for content in self._contents:
            async with aclosing(content.parts()) as parts:
                async for part in parts:
                    await _send_part(part, send)
                    if self._is_disconnected:
                        return

    async def _wait_for_disconnect(self, receive: Receive) -> None:
        await wait_for_disconnect(receive)
        self._is_disconnected = True


async def _send_part(part: bytes, send: Send) -> None:
    for start in range(0, len(part), SEND_BYTES):
        await send({"type": "http.response.body", "body": part[start : start + SEND_BYTES], "more_body": True})
