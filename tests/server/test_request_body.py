"""Request bodies that are too large, pause too long, or come slowly."""

import asyncio
import json
from collections.abc import AsyncGenerator, Iterable
from pathlib import Path
from typing import Any

import pytest

from limelight.errors import TooManyBytes
from limelight.models import LOCAL_OWNER
from limelight.server import request_body
from limelight.server.request_body import LARGE_JSON, MAX_JSON_VALUES, BodyBudget, JsonDecoder
from limelight.server.routes.login import MAX_BODY
from tests.server.keyed_server import KeyedServer
from tests.server.raw_connection import connected
from tests.support import agents
from tests.support.server import Served, asking, serving
from tests.support.wait import eventually


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


@pytest.mark.requirement("connections-bounded")
async def test_body_that_needs_no_key_has_a_time_limit(keyed: KeyedServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("limelight.server.endpoint.PUBLIC_BODY_SECONDS", 0.2)
    keyed.key("ann")
    problem = await answer(keyed.served, "/auth/login", [b" "] * 100, "content-length: 200", pause=0.01)
    assert (problem["status"], problem["code"]) == (408, "body_timeout")
    assert problem["detail"].endswith("0.2 seconds in all")


async def test_slow_but_steady_body_is_accepted(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(request_body, "SILENCE_SECONDS", 0.4)
    body = json.dumps(asking("hi")).encode()
    tenth = len(body) // 10 + 1
    pieces = [body[start : start + tenth] for start in range(0, len(body), tenth)]
    reply = await answer(served, "/chat", pieces, f"content-length: {len(body)}", pause=0.08)
    assert reply["state"] == "finished"


@pytest.mark.requirement("connections-bounded")
def test_bodies_of_all_users_have_one_limit_and_local_has_it_too() -> None:
    budget = BodyBudget(limit=60, total_limit=100)
    ann, local = budget.reserve("ann"), budget.reserve(LOCAL_OWNER)
    ann.resize(60)
    with pytest.raises(TooManyBytes, match="of all users hold 60 bytes of 100"):
        local.resize(41)
    local.resize(40)
    with pytest.raises(TooManyBytes, match="of all users"):
        budget.reserve("ben").resize(1)
    ann.release()
    budget.reserve("ben").resize(60)


def test_free_bytes_of_a_body_are_not_reserved() -> None:
    budget = BodyBudget(limit=60, total_limit=100)
    budget.reserve("ann").resize(60)
    signal = budget.reserve("ann")
    signal.free_bytes = 10
    signal.grow(10)
    with pytest.raises(TooManyBytes):
        signal.grow(11)
    assert budget.held("ann") == 60


@pytest.mark.requirement("connections-bounded")
async def test_stop_and_decision_are_not_refused_because_of_other_bodies(tmp_path: Path) -> None:
    async with (
        serving(agents.patient, data=tmp_path, limits__request_bytes=2000) as served,
        connected(served) as wire,
    ):
        frames = served.ask("go")
        await anext(frames)
        (live,) = served.runtime.control.live_runs
        lines = ["POST /chat HTTP/1.1", "host: 127.0.0.1", "content-type: application/json", "content-length: 2000"]
        wire.writer.write("\r\n".join([*lines, "", "{"]).encode())
        await eventually(lambda: served.runtime.body_budget.held(LOCAL_OWNER) == 2000)
        refused = await served.problem("POST", "/chat", json=asking("hi", session_id="other"))
        assert refused["code"] == "too_many_bytes"
        stopped = await served.http.post(f"/runs/{live.run.run_id}/cancel", json={"reason": "x" * 100})
        assert (stopped.status_code, stopped.json()["state"]) == (200, "cancelled")


def test_body_larger_than_all_limits_is_accepted_alone() -> None:
    budget = BodyBudget(limit=60, total_limit=100)
    budget.reserve(LOCAL_OWNER).resize(1000)
    assert budget.held(LOCAL_OWNER) == 1000


async def test_body_with_too_many_values_is_refused(served: Served) -> None:
    body = asking("go", extra=[{}] * MAX_JSON_VALUES)
    refused = await served.http.post("/chat", json=body)
    assert (refused.status_code, refused.json()["code"]) == (413, "body_too_large")
    assert refused.json()["detail"] == f"the JSON has more than {MAX_JSON_VALUES:,} values"


async def test_text_with_many_brackets_and_commas_is_answered(served: Served) -> None:
    body = asking("[{, " * MAX_JSON_VALUES)
    answered = await served.http.post("/chat", json=body)
    assert answered.status_code == 200, answered.text[:200]


async def test_large_bodies_are_decoded_one_at_a_time() -> None:
    decoder = JsonDecoder()
    turns: list[str] = []

    async def decode(name: str, body: bytes) -> None:
        await decoder.decode(body)
        turns.append(name)

    async def other_task() -> None:
        for _ in range(3):
            turns.append("other")
            await asyncio.sleep(0)

    large = b'"' + b"x" * LARGE_JSON + b'"'
    await asyncio.gather(decode("first", large), decode("second", large), decode("small", b"1"), other_task())
    assert turns == ["small", "other", "first", "other", "other", "second"]
