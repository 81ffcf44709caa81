"""Reading of request bodies, with limits of size, time and JSON values, and a limit of the memory for a user's bodies.

A body counts toward the memory limit of its user until the request is refused or its run has begun, also while the
request is queued, even if the client has disconnected.
"""

import asyncio
import math
from collections import Counter
from typing import Any

import msgspec
from starlette.requests import ClientDisconnect, Request
from starlette.types import Receive

from limelight.errors import BadJson, BadRequest, BodyTimeout, BodyTooLarge, TooManyBytes
from limelight.json_values import has_more_values
from limelight.models import LOCAL_OWNER
from limelight.runs.limits import RETRY_AFTER_SECONDS

SILENCE_SECONDS = 60.0
"""Time limit between two chunks of a body. The complete body of a user has no time limit."""
PUBLIC_BODY_SECONDS = 10.0
"""Time limit of the complete body of a request that needs no key."""
SIGNAL_BYTES = 64 * 1024
"""Bytes of the body of a Stop or a decision that do not count for a limit of memory. Such a request must not be refused
because of other requests."""
MAX_JSON_VALUES = 200_000
"""Limit of the values and keys in the JSON of a request or socket message; a chat of 10,000 messages has fewer. Without
it, a body of millions of small values would take seconds to decode, and much more memory than its size."""
LARGE_JSON = 256 * 1024
"""Size in bytes above which JSON bodies are decoded one at a time, with other tasks in between."""


class BodyReservation:
    """The bytes of one request that count toward the memory limit of its user."""

    def __init__(self, budget: "BodyBudget", owner: str) -> None:
        self._budget = budget
        self._owner = owner
        self._size = 0
        self.free_bytes = 0
        """Bytes of the body that are not reserved."""

    def grow(self, size: int) -> None:
        """Reserve memory for the first `size` bytes of the body, unless they are already reserved.

        Raises TooManyBytes as `resize` does.
        """
        self.resize(max(self._size, size - self.free_bytes))

    def resize(self, size: int) -> None:
        """Set the number of reserved bytes. Raises TooManyBytes above the limit of the owner, or of all users.

        The only request of an owner is exempt from the owner's limit, and the server's only one from the total limit.
        """
        if size > self._size:
            self._budget.check(self._owner, self._size, size)
        self._add(size - self._size)

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
        self._budget.add(self._owner, size)


class BodyBudget:
    """Limits the memory for the request bodies of each user, and of all users together.

    For the user `local` only the total limit applies.
    """

    def __init__(self, limit: int, total_limit: int) -> None:
        self._limit = limit
        self._total_limit = total_limit
        self._held: Counter[str] = Counter()
        self._total = 0

    def reserve(self, owner: str) -> BodyReservation:
        """Return an empty reservation for a request of a user."""
        return BodyReservation(self, owner)

    def check(self, owner: str, held: int, size: int) -> None:
        """Raise TooManyBytes if a request of an owner cannot grow from `held` to `size` reserved bytes."""
        others = self._held[owner] - held
        if owner != LOCAL_OWNER and others > 0 and others + size > self._limit:
            detail = f"requests of yours hold {others:,} bytes of {self._limit:,}: wait for one of them to begin"
            raise TooManyBytes(detail, retry_after=RETRY_AFTER_SECONDS)
        others = self._total - held
        if others > 0 and others + size > self._total_limit:
            detail = f"requests of all users hold {others:,} bytes of {self._total_limit:,}: try again in a moment"
            raise TooManyBytes(detail, retry_after=RETRY_AFTER_SECONDS)

    def add(self, owner: str, size: int) -> None:
        self._total += size
        self._held[owner] += size
        if not self._held[owner]:
            del self._held[owner]

    def held(self, owner: str) -> int:
        return self._held[owner]


async def read_body(request: Request, limit: int, reservation: BodyReservation, max_seconds: float = math.inf) -> bytes:
    """Read the complete body of a request.

    Raises BodyTooLarge, TooManyBytes, BodyTimeout if nothing arrives for SILENCE_SECONDS or the body takes longer than
    `max_seconds`, and BadRequest if the client disconnects. `Content-Length` is checked before the body is read.
    """
    declared = request.headers.get("content-length", "")
    if declared.isdecimal():
        if int(declared) > limit:
            raise _too_large(limit)
        reservation.grow(int(declared))
    try:
        return await _read_chunks(request, limit, reservation, max_seconds)
    except ClientDisconnect as error:
        raise BadRequest("the client disconnected before its request was complete") from error
    except TimeoutError as error:
        limits = f"{SILENCE_SECONDS:g} seconds without a byte"
        if max_seconds != math.inf:
            limits += f", and {max_seconds:g} seconds in all"
        raise BodyTimeout(f"the body took too long: the limit is {limits}") from error


async def _read_chunks(request: Request, limit: int, reservation: BodyReservation, max_seconds: float) -> bytes:
    body = bytearray()
    now = asyncio.get_running_loop().time
    ends_at = now() + max_seconds
    async with asyncio.timeout(min(SILENCE_SECONDS, max_seconds)) as timeout:
        async for chunk in request.stream():
            timeout.reschedule(min(now() + SILENCE_SECONDS, ends_at))
            body += chunk
            if len(body) > limit:
                raise _too_large(limit)
            reservation.grow(len(body))
    return bytes(body)


def _too_large(limit: int) -> BodyTooLarge:
    return BodyTooLarge(f"the body is over the limit of {limit} bytes")


class JsonDecoder:
    """Decodes the JSON of request bodies. Other tasks of the event loop run between two large bodies."""

    def __init__(self) -> None:
        self._lock = asyncio.Lock()

    async def decode(self, body: bytes) -> Any:
        """Return the decoded body. Raises BadJson, and BodyTooLarge if it has too many values."""
        if len(body) <= LARGE_JSON:
            return decode_json(body)
        async with self._lock:
            await asyncio.sleep(0)
            return decode_json(body)


def decode_json(text: bytes) -> Any:
    """Return the decoded JSON of a client. Raises BadJson, and BodyTooLarge if it has too many values."""
    if has_more_values(text, MAX_JSON_VALUES):
        raise BodyTooLarge(f"the JSON has more than {MAX_JSON_VALUES:,} values")
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise BadJson(f"the body is not valid JSON: {error}") from error


async def wait_for_disconnect(receive: Receive) -> None:
    """Wait until the client has disconnected. The body has to be read first."""
    while (await receive())["type"] != "http.disconnect":
        pass
