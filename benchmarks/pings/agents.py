"""The two agents that work during the pings: one computes in a Python loop, one streams text."""

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
"""The reply of the model of `grinder`: a program with a long loop."""


@tool
def grind() -> str:
    """Compute in a loop for BENCH_SECONDS, without a pause, so that the thread stays busy."""
    end = time.monotonic() + float(os.environ["BENCH_SECONDS"])
    while time.monotonic() < end:
        sum(range(1000))
    return "fine"


def grinder() -> Any:
    """Create a CodeAgent whose code is one long loop."""
    return CodeAgent(tools=[grind], model=OpenAIModel("understudy"))


async def talker(messages: Any, ctx: Any) -> AsyncIterator[str]:
    """Stream a hundred tokens a second, forever."""
    while True:
        yield "word "
        await asyncio.sleep(0.01)
