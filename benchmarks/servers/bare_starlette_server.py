"""The server with the least work possible: a Starlette StreamingResponse that sends frames encoded in advance.

It has no log, no cursors, no resume and no other viewers: it writes bytes to a socket, one event at a time.
"""

import asyncio
import sys
from collections.abc import AsyncIterator

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import StreamingResponse
from starlette.routing import Route

from benchmarks.workload import frames, tokens_of

FRAMES = {mode: frames(tokens_of(mode)) for mode in ("turn", "burst", "short", "idle")}


async def _stream(mode: str) -> AsyncIterator[bytes]:
    for frame in FRAMES[mode][:-1] if mode == "idle" else FRAMES[mode]:
        if mode != "burst":
            await asyncio.sleep(0)
        yield frame
    if mode == "idle":
        await asyncio.Event().wait()


async def respond(request: Request) -> StreamingResponse:
    await request.body()
    return StreamingResponse(_stream(request.path_params["mode"]), media_type="text/event-stream")


app = Starlette(routes=[Route("/{mode}", respond, methods=["POST"])])

if __name__ == "__main__":
    uvicorn.run(app, port=int(sys.argv[1]), loop="uvloop", http="httptools", access_log=False, log_level="warning")
