"""A stream of Records that reconnects when the connection is lost.

A lost or refused connection, a 5xx response and too long a silence lead to a new connection, which continues after
the last complete Record. Records that the server sends twice are dropped, so that each is yielded once and in order.
Errors that a new connection cannot remedy are raised. The caller opens the connections and says which Record is the
last; this module knows no routes.
"""

from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator

import httpx
import msgspec

from limelight.client.backoff import Backoff
from limelight.client.errors import ConnectionLost, Limited, ServerError, unsupported_data
from limelight.client.models import Gap
from limelight.client.sse import SseParser
from limelight.events import Record

Connect = Callable[[int], Awaitable[httpx.Response | None]]
"""A function that opens a stream of the Records after a `seq`. Returns None if the server has no more Records to
send."""


class GapRange(msgspec.Struct):
    """The JSON form of a gap: the numbers of the first and the last Record that are no longer stored."""

    first: int = msgspec.field(name="from")
    last: int = msgspec.field(name="to")


class _GapData(msgspec.Struct):
    gap: GapRange


OPENED = Gap(0, 0)
"""The first item of a stream that was created with an open response. Once the caller has received it, the stream
closes the response itself."""


async def stream_records(
    connect: Connect,
    backoff: Backoff,
    *,
    after: int = 0,
    response: httpx.Response | None = None,
    is_last: Callable[[Record], bool] = lambda _: False,
) -> AsyncGenerator[Record | Gap]:
    """Yield the Records and gaps after the seq `after`, up to and including the Record for which `is_last` is true.

    A stream must not be wrapped in another async generator: an event loop that shuts down closes all generators at
    once, and closing one that is being closed by another fails.
    """
    was_connected = response is not None
    while True:
        try:
            if response is not None:
                yield OPENED
            response = response or await connect(after)
            if response is None:
                return
            was_connected = True
            parser = SseParser()
            async for chunk in response.aiter_bytes():
                for item in _parse(parser, chunk, backoff):
                    if isinstance(item, Gap):
                        if item.last > after:
                            after = item.last
                            yield item
                    # Seq 0 is not in the log: it reports a request that was cancelled before its run began.
                    elif item.seq > after or item.seq == after == 0:
                        after = item.seq
                        yield item
                        if is_last(item):
                            return
            cause: Exception = ConnectionLost("the server ended the stream")
        except (httpx.TransportError, ServerError) as error:
            cause = error
        except Limited as error:  # the server may still count the connection that was lost
            if not was_connected:
                raise
            cause = error
        finally:
            if response is not None:
                await response.aclose()
        response = None
        await backoff.wait(cause)


def _parse(parser: SseParser, chunk: bytes, backoff: Backoff) -> Iterator[Record | Gap]:
    """Decode the events that a chunk of bytes completes. Resets the backoff if the chunk has an event or a comment."""
    backoff.restart_timer()
    comments = parser.comments
    events = parser.feed(chunk)
    if events or parser.comments > comments:
        backoff.reset()
    return map(_decode, events)


def _decode(data: str) -> Record | Gap:
    try:
        if data.startswith('{"gap"'):
            gap = msgspec.json.decode(data, type=_GapData).gap
            return Gap(gap.first, gap.last)
        return msgspec.json.decode(data, type=Record)
    except msgspec.DecodeError as error:
        raise unsupported_data(error) from error
