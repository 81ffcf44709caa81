"""The agent behind the proxies. It does what the question says, and stops at gates: files that the test makes."""

import asyncio
import os
from collections.abc import AsyncIterator
from pathlib import Path

from limelight.events import AnyEvent, ToolFinished, ToolStarted
from limelight.messages import Message
from limelight.sources.base import Context, FileMade

GATES = Path(os.environ.get("LIMELIGHT_GATES", "/nonexistent"))


async def stage(messages: list[Message], ctx: Context) -> AsyncIterator[str | AnyEvent | FileMade]:
    said = messages[-1].text
    if said.startswith("wait for "):
        yield "one "
        await _gate(said.removeprefix("wait for "))
        yield "two"
    elif said == "make":
        yield ToolStarted(call_id="m", name="make", args={})
        yield ToolFinished(call_id="m", result="long " * 20_000)
        yield FileMade(name="note.txt", data=b"a note", media_type="text/plain")
        yield "made"
    else:
        yield f"You said {said}."


async def _gate(name: str) -> None:
    while not (GATES / name).exists():  # noqa: ASYNC110 - the test is another process
        await asyncio.sleep(0.02)
