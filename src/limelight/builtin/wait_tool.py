"""`wait`, for agents that are asked to let some time pass, and for whoever wants to see a tool that takes its time."""

import asyncio

MOST_SECONDS = 60


async def wait(seconds: float) -> str:
    """Wait for some seconds, 60 at most. Only if somebody asks for it.

    Args:
        seconds: How many.
    """
    slept = min(max(seconds, 0), MOST_SECONDS)
    await asyncio.sleep(slept)
    return f"waited for {slept:g} seconds"
