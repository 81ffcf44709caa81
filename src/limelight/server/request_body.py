"""Reading of request bodies, with limits of size and time, and a limit of the memory for all bodies of a user.

A body counts for the memory limit of its user until the request is refused or its run has begun. It counts also while
the request is queued, even if the client has disconnected.
"""

import asyncio
from collections import Counter

from starlette.requests import ClientDisconnect, Request
from starlette.types import Receive

from limelight.errors import BadRequest, BodyTimeout, BodyTooLarge, TooManyBytes
from limelight.models import LOCAL_OWNER
from limelight.runs.limits import RETRY_AFTER_SECONDS

SILENCE_SECONDS = 60.0
"""Time limit between two chunks of a body. The complete body has no time limit."""


class BodyReservation:
    """The bytes that one request counts for the memory limit of its user."""

    def __init__(self, held: "Counter[str]", limit: int, owner: str) -> None:
        self._held = held
        self._limit = limit
        self._owner = owner
        self._size = 0

    @property
    def size(self) -> int:
        return self._size

    def resize(self, size: int) -> None:
        """Set the number of reserved bytes. Raises TooManyBytes above the limit of the owner.

        A request is always allowed if the owner has no others.
        """
        added = size - self._size
        if added > 0 and self._owner != LOCAL_OWNER:
            others = self._held[self._owner] - self._size
            if others > 0 and others + size > self._limit:
                detail = f"requests of yours hold {others:,} bytes of {self._limit:,}: wait for one of them to begin"
                raise TooManyBytes(detail, retry_after=RETRY_AFTER_SECONDS)
        self._add(added)

    def transfer(self, owner: str) -> None:
        """Move the reserved bytes to another owner. Raises TooManyBytes."""
        size = self._size
        self.release()
        self._owner = owner
        self.resize(size)

    def release(self) -> None:
        self._add(-self._size)

    def _add(self, size: int) -> None:
        self._size += size
        self._held[self._owner] += size
        if not self._held[self._owner]:
            del self._held[self._owner]


class BodyBudget:
    """Limits the memory that the request bodies of each user occupy."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._held: Counter[str] = Counter()

    def reserve(self, owner: str) -> BodyReservation:
        """Return an empty reservation for a request of a user."""
        return BodyReservation(self._held, self._limit, owner)

    def held(self, owner: str) -> int:
        return self._held[owner]


async def read_body(request: Request, limit: int, reservation: BodyReservation) -> bytes:
    """Read the complete body of a request.

    Raises BodyTooLarge, TooManyBytes, BodyTimeout if nothing arrives for SILENCE_SECONDS, and BadRequest if the client
    disconnects. `Content-Length` is checked before the body is read.
    """
    declared = request.headers.get("content-length", "")
    if declared.isdecimal():
        if int(declared) > limit:
            raise _too_large(limit)
        reservation.resize(int(declared))
    try:
        return await _read_chunks(request, limit, reservation)
    except ClientDisconnect as error:
        raise BadRequest("the client disconnected before its request was complete") from error
    except TimeoutError as error:
        raise BodyTimeout(f"nothing of the body came for {SILENCE_SECONDS:g} seconds") from error


async def _read_chunks(request: Request, limit: int, reservation: BodyReservation) -> bytes:
    body = bytearray()
    now = asyncio.get_running_loop().time
    async with asyncio.timeout(SILENCE_SECONDS) as timeout:
        async for chunk in request.stream():
            timeout.reschedule(now() + SILENCE_SECONDS)
            body += chunk
            if len(body) > limit:
                raise _too_large(limit)
            reservation.resize(max(reservation.size, len(body)))
    return bytes(body)


def _too_large(limit: int) -> BodyTooLarge:
    return BodyTooLarge(f"the body is over the limit of {limit} bytes")


async def wait_for_disconnect(receive: Receive) -> None:
    """Wait until the client has disconnected. The body has to be read first."""
    while (await receive())["type"] != "http.disconnect":
        pass
