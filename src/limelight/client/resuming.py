"""A stream of Records that survives its connections.

A cut, a refused connection, a 5xx or silence for too long is no end: the next connection goes on behind the last Record
that came whole. What a server sends twice is dropped, so that every Record comes once and in order. Anything that
trying again cannot mend is raised. `client` says how to connect and when it is over; this module must not know routes.
"""

from collections.abc import AsyncGenerator, Awaitable, Callable

import httpx
import msgspec

from limelight.client.errors import ClientError, ConnectionLost, ServerError
from limelight.client.frames import Frame, SseParser
from limelight.client.infos import Gap
from limelight.client.patience import Patience
from limelight.events import Record

Connect = Callable[[int], Awaitable[httpx.Response | None]]
"""Opens the stream behind a seq; None if there is nothing more."""


class _GapRange(msgspec.Struct):
    first: int = msgspec.field(name="from")
    last: int = msgspec.field(name="to")


class _GapData(msgspec.Struct):
    gap: _GapRange


async def resuming(
    connect: Connect,
    patience: Patience,
    *,
    after: int = 0,
    first: httpx.Response | None = None,
    over: Callable[[Record], bool] = lambda _: False,
) -> AsyncGenerator[Record | Gap]:
    """Everything behind `after`, up to the Record with which it is over. `first` is a stream that is open already."""
    response = first
    while True:
        try:
            response = response or await connect(after)
            if response is None:
                return
            async for item in _items(response, patience):
                if isinstance(item, Gap):
                    if item.last > after:
                        after = item.last
                        yield item
                # Number 0 is in no log: a request that was stopped before it became a run.
                elif item.seq > after or item.seq == after == 0:
                    after = item.seq
                    patience.well()
                    yield item
                    if over(item):
                        return
            why: Exception = ConnectionLost("the server ended the stream")
        except (httpx.TransportError, ServerError) as error:
            why = error
        finally:
            if response is not None:
                await response.aclose()
        response = None
        await patience.wait(why)


async def _items(response: httpx.Response, patience: Patience) -> AsyncGenerator[Record | Gap]:
    """What one connection brings."""
    parser, comments = SseParser(), 0
    async for chunk in response.aiter_bytes():
        patience.alive()
        frames = parser.feed(chunk)
        if parser.comments > comments:
            comments = parser.comments
            patience.well()
        for frame in frames:
            yield _item(frame)


def _item(frame: Frame) -> Record | Gap:
    try:
        if frame.data.startswith('{"gap"'):
            gap = msgspec.json.decode(frame.data, type=_GapData).gap
            return Gap(gap.first, gap.last)
        return msgspec.json.decode(frame.data, type=Record)
    except msgspec.DecodeError as error:
        raise ClientError(
            f"the server sent what this version does not understand ({error}): is the client older?", code="bad_record"
        ) from error
