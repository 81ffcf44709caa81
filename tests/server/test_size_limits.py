"""Size limits of sessions and of requests."""

import asyncio
import secrets
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from limelight.events import AnyEvent, ToolFinished, ToolStarted
from limelight.sources.base import FileMade
from tests.server.v2.socket_client import socket
from tests.support import agents
from tests.support.server import asking, collect, serving, text_of

SESSION_BYTES = 100_000


async def text_filler(messages: Any, ctx: Any) -> AsyncIterator[str]:
    """Emits text without end."""
    while True:
        yield "word " * 200
        await asyncio.sleep(0)


async def result_filler(messages: Any, ctx: Any) -> AsyncIterator[AnyEvent]:
    """Calls a tool with a large result repeatedly."""
    for number in range(10_000):
        yield ToolStarted(call_id=f"c{number}", name="fetch", args={})
        yield ToolFinished(call_id=f"c{number}", result=f"{number} " * 20_000)
        await asyncio.sleep(0)


async def file_filler(messages: Any, ctx: Any) -> AsyncIterator[FileMade]:
    """Makes files that cannot be compressed."""
    for number in range(10_000):
        yield FileMade(name=f"{number}.bin", data=secrets.token_bytes(10_000), media_type="application/octet-stream")


@pytest.mark.parametrize("agent", [text_filler, result_filler, file_filler])
async def test_run_that_exceeds_the_session_size_ends_with_log_full(tmp_path: Path, agent: Any) -> None:
    async with serving(agent, agents.echo, data=tmp_path, limits__session_bytes=SESSION_BYTES) as served:
        name = agent.__name__
        found = await collect(served.ask("go", agent=name, session_id="s"))
        end = next(frame.data["data"] for frame in found if frame.type == "error")
        assert (end["code"], "begin a new one" in end["message"]) == ("log_full", True)
        whole = await served.http.post("/chat", json=asking("go", agent=name, session_id="t"))
        assert (whole.status_code, whole.json()["code"]) == (502, "log_full")
        other = await collect(served.ask("still there?", agent="echo", session_id="u"))
        assert "still there?" in text_of(other)
    assert size_of(tmp_path / "limelight.db") < 20 * SESSION_BYTES


def size_of(file: Path) -> int:
    return file.stat().st_size


async def test_full_session_refuses_new_runs_until_it_is_deleted(tmp_path: Path) -> None:
    async with serving(result_filler, agents.echo, data=tmp_path, limits__session_bytes=SESSION_BYTES) as served:
        for _ in range(5):  # the log is compressed, so more fits than was counted during the run
            body = asking("go", agent="result_filler", session_id="s")
            if (await served.http.post("/chat", json=body)).status_code == 409:
                break
        for path in ("/chat", "/chat/stream"):
            refused = await served.problem("POST", path, json=asking("more", agent="echo", session_id="s"))
            assert (refused["status"], refused["code"]) == (409, "session_full")
            assert "begin a new session" in refused["detail"]
        async with socket(served, "s") as ws:
            await ws.send("query", query="more")
            assert (await ws.error())[1] == "session_full"
        assert (await served.http.get("/sessions/s")).json()["run_id"]  # the log can still be read
        await served.http.delete("/sessions/s")
        assert (await served.http.post("/chat", json=asking("hi", agent="echo", session_id="s"))).status_code == 200
