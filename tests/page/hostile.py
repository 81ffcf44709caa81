"""An agent that puts hostile text wherever an agent can put text."""

from collections.abc import AsyncIterator
from typing import Any


async def hostile(messages: Any, ctx: Any) -> AsyncIterator[str]:
    """Wants to run a script in your browser."""
    yield "TODO"
