"""A request's body, read within bounds: so many bytes, also of all that a user sends at once, and no long silence.

`endpoint.py` makes sense of it.
"""

import asyncio

from starlette.requests import ClientDisconnect, Request

from limelight.errors import BadRequest, BodyTimeout, BodyTooLarge
from limelight.server.body_budget import Load

SILENCE_SECONDS = 60.0
"""How long a body may pause. One that comes slowly but steadily takes as long as it takes."""


async def read_body(request: Request, limit: int, load: Load) -> bytes:
    """The whole body. Raises BodyTooLarge or TooManyBytes before more than the limit is kept, and BodyTimeout when
    nothing comes. What is announced counts before it comes: who is refused need not send it."""
    declared = request.headers.get("content-length", "")
    if declared.isdecimal():
        if int(declared) > limit:
            raise _too_large(limit)
        load.carry(int(declared))
    try:
        return await _pieces(request, limit, load)
    except ClientDisconnect as error:
        raise BadRequest("the client left before its request was whole") from error
    except TimeoutError as error:
        raise BodyTimeout(f"nothing of the body came for {SILENCE_SECONDS:g} seconds") from error


async def gone(request: Request) -> None:
    """Returns when the client has left. To be asked when the body is read."""
    while (await request.receive())["type"] != "http.disconnect":
        pass


async def _pieces(request: Request, limit: int, load: Load) -> bytes:
    body = bytearray()
    now = asyncio.get_running_loop().time
    async with asyncio.timeout(SILENCE_SECONDS) as patience:
        async for piece in request.stream():
            patience.reschedule(now() + SILENCE_SECONDS)
            body += piece
            if len(body) > limit:
                raise _too_large(limit)
            load.carry(max(load.size, len(body)))
    return bytes(body)


def _too_large(limit: int) -> BodyTooLarge:
    return BodyTooLarge(f"the body is over the limit of {limit} bytes")
