"""The two agents that are at work while others ping: one in a loop, one that talks."""

# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUntypedFunctionDecorator=false, reportUnknownArgumentType=false
# The framework's own types are partly unknown.

import asyncio
import os
import time
from collections.abc import AsyncIterator
from typing import Any

from smolagents import CodeAgent, OpenAIModel, tool

CODE = "Thought: I grind.\n<code>\nprint('begun')\ngrind()\nfinal_answer('ground')\n</code>"


@tool
def grind() -> str:
    """Keep a thread busy without ever letting go of it, for BENCH_SECONDS."""
    end = time.monotonic() + float(os.environ["BENCH_SECONDS"])
    while time.monotonic() < end:
        sum(range(1000))
    return "fine"


def grinder() -> Any:
    """A CodeAgent whose code is one long loop."""
    return CodeAgent(tools=[grind], model=OpenAIModel("understudy"))


async def talker(messages: Any, ctx: Any) -> AsyncIterator[str]:
    """A hundred tokens a second, for ever."""
    while True:
        yield "word "
        await asyncio.sleep(0.01)
