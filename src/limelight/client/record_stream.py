"""A stream of Records that survives its connections.

A cut, a refused connection, a 5xx or silence for too long is no end: the next connection goes on behind the last Record
that came whole. What a server sends twice is dropped, so that every Record comes once and in order. Anything that
trying again cannot mend is raised. `client` says how to connect and when it is over; this module must not know routes.
"""

from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator

import httpx
import msgspec

from limelight.client.backoff import Patience
from limelight.client.errors import ClientError, ConnectionLost, Limited, ServerError
from limelight.client.models import Gap
from limelight.client.sse import Frame, SseParser
from limelight.events import Record

Connect = Callable[[int], Awaitable[httpx.Response | None]]
"""Opens the stream behind a seq; None if there is nothing more."""


class _GapRange(msgspec.Struct):
    first: int = msgspec.field(name="from")
    last: int = msgspec.field(name="to")


class _GapData(msgspec.Struct):
    gap: _GapRange


BEGUN = Gap(0, 0)
"""What a stream says first if it was handed an open connection: it holds it now, and will close it."""


async def resuming(
    connect: Connect,
    patience: Patience,
    *,
    after: int = 0,
    first: httpx.Response | None = None,
    over: Callable[[Record], bool] = lambda _: False,
) -> AsyncGenerator[Record | Gap]:
    """Everything behind `after`, up to the Record with which it is over.

    This is the only generator on a stream's way: when a loop shuts down it closes all generators at once, and one that
    closes another would get in its way.
    """
    response = first
    was_let_in = first is not None
    while True:
        try:
            if response is not None:
                yield BEGUN
            response = response or await connect(after)
            if response is None:
                return
            was_let_in = True
            parser = SseParser()
            async for chunk in response.aiter_bytes():
                for item in _heard(parser, chunk, patience):
                    if isinstance(item, Gap):
                        if item.last > after:
                            after = item.last
                            yield item
                    # Number 0 is in no log: a request that was stopped before it became a run.
                    elif item.seq > after or item.seq == after == 0:
                        after = item.seq
                        yield item
                        if over(item):
                            return
            why: Exception = ConnectionLost("the server ended the stream")
        except (httpx.TransportError, ServerError) as error:
            why = error
        except Limited as error:  # who comes back may be taken for one more, as long as the cut was not noticed
            if not was_let_in:
                raise
            why = error
        finally:
            if response is not None:
                await response.aclose()
        response = None
        await patience.wait(why)


def _heard(parser: SseParser, chunk: bytes, patience: Patience) -> Iterator[Record | Gap]:
    """What a chunk completes. Any byte is life; frames and comments show that the connection was worth it."""
    patience.alive()
    comments = parser.comments
    frames = parser.feed(chunk)
    if frames or parser.comments > comments:
        patience.well()
    return (_item(frame) for frame in frames)


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
