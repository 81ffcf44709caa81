"""`exit()` and interrupts in an agent, in its task and in threads."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.server import collect, serving


@pytest.mark.parametrize("error", [SystemExit(3), KeyboardInterrupt("enough")])
@pytest.mark.parametrize("where", ["itself", "thread"])
async def test_exit_in_an_agent_ends_only_its_run(tmp_path: Path, where: str, error: BaseException) -> None:
    def leave() -> None:
        raise error

    async def leaver(messages: Any, ctx: Any) -> AsyncIterator[str]:
        yield "I go."
        if where == "thread":
            await asyncio.to_thread(leave)
        leave()

    async def stays(messages: Any, ctx: Any) -> AsyncIterator[str]:
        yield "Still here."

    async with serving(leaver, stays, data=tmp_path) as served:
        left = await collect(served.ask("go"))
        assert [frame.type for frame in left][-2:] == ["error", "done"]
        assert left[-2].data["data"]["code"] == "agent_error"
        assert type(error).__name__ in left[-2].data["data"]["message"]
        again = await collect(served.ask("go", agent="stays"))
        assert [frame.type for frame in again] == ["status", "token", "done"]
