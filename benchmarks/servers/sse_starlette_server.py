"""The server as many applications build it: FastAPI with sse-starlette, and one `json.dumps` per event."""

import asyncio
import json
import sys
from collections.abc import AsyncIterator

import uvicorn
from fastapi import FastAPI, Request
from sse_starlette import EventSourceResponse

from benchmarks.workload import payloads, tokens_of

PAYLOADS = {mode: payloads(tokens_of(mode)) for mode in ("turn", "burst", "short", "idle")}
app = FastAPI()


async def _stream(mode: str) -> AsyncIterator[dict[str, str]]:
    for number, payload in enumerate(PAYLOADS[mode][:-1] if mode == "idle" else PAYLOADS[mode], start=1):
        if mode != "burst":
            await asyncio.sleep(0)
        yield {"id": str(number), "data": json.dumps(payload)}
    if mode == "idle":
        await asyncio.Event().wait()


@app.post("/{mode}")
async def respond(mode: str, request: Request) -> EventSourceResponse:
    await request.body()
    return EventSourceResponse(_stream(mode), sep="\n")


if __name__ == "__main__":
    uvicorn.run(app, port=int(sys.argv[1]), loop="uvloop", http="httptools", access_log=False, log_level="warning")
