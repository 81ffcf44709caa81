"""Request bodies that are too large, pause too long, or come slowly."""

import asyncio
import json
from collections.abc import AsyncGenerator, Iterable
from pathlib import Path
from typing import Any

import pytest

from limelight.server import request_body
from limelight.server.routes.login import MAX_BODY
from tests.server.keyed_server import KeyedServer
from tests.server.raw_connection import connected
from tests.support import agents
from tests.support.server import Served, asking, serving


async def answer(served: Served, path: str, pieces: Iterable[bytes], *headers: str, pause: float = 0) -> dict[str, Any]:
    """The JSON answer to a request whose body is sent in these pieces."""
    lines = [f"POST {path} HTTP/1.1", "host: 127.0.0.1", "content-type: application/json", *headers, "", ""]
    async with connected(served) as wire:
        wire.writer.write("\r\n".join(lines).encode())
        for piece in pieces:
            wire.writer.write(piece)
            await wire.writer.drain()
            await asyncio.sleep(pause)
        return json.loads((await wire.answer())[1])


@pytest.fixture
async def served(tmp_path: Path) -> AsyncGenerator[Served]:
    async with serving(agents.talker, data=tmp_path) as served:
        yield served


async def test_login_refuses_a_large_body(keyed: KeyedServer) -> None:
    keyed.key("ann")
    announced = await answer(keyed.served, "/auth/login", [], f"content-length: {MAX_BODY + 1}")
    chunk = b"%x\r\n%b\r\n" % (1024, b"x" * 1024)
    sent = await answer(keyed.served, "/auth/login", [chunk] * 9, "transfer-encoding: chunked")
    for problem in (announced, sent):
        assert (problem["status"], problem["code"]) == (413, "body_too_large")
        assert str(MAX_BODY) in problem["detail"]
    long = await keyed.served.problem("POST", "/auth/login", json={"key": "x" * 3500})
    assert long["code"] == "unauthorized"


@pytest.mark.parametrize("path", ["/auth/login", "/chat", "/chat/stream", "/api/v2/sessions"])
async def test_body_that_pauses_too_long_is_refused(served: Served, path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(request_body, "SILENCE_SECONDS", 0.1)
    problem = await answer(served, path, [b'{"a'], "content-length: 100")
    assert (problem["status"], problem["code"]) == (408, "body_timeout")


async def test_slow_but_steady_body_is_accepted(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(request_body, "SILENCE_SECONDS", 0.4)
    body = json.dumps(asking("hi")).encode()
    tenth = len(body) // 10 + 1
    pieces = [body[start : start + tenth] for start in range(0, len(body), tenth)]
    reply = await answer(served, "/chat", pieces, f"content-length: {len(body)}", pause=0.08)
    assert reply["state"] == "finished"
