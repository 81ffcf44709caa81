"""Probes need no key: their checks are cached, and their answers contain no details."""

import asyncio
from collections.abc import AsyncGenerator, Callable
from pathlib import Path
from typing import Any

import pytest

from limelight.errors import StoreUnavailable
from limelight.server import readiness
from tests.support import agents
from tests.support.server import Served, serving
from tests.support.wait import eventually

PROBE_PATHS = [("/ready", "ping"), ("/api/v2/health", "active_sessions")]
CALLERS = 50


@pytest.fixture
async def served(tmp_path: Path) -> AsyncGenerator[Served]:
    async with serving(agents.talker, data=tmp_path, auth__api_key="sesame") as served:
        yield served


def counting(served: Served, method: str, monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The results of a method of the store, in the order of its calls."""
    ask: Callable[..., Any] = getattr(served.runtime.store, method)
    answers: list[Any] = []

    async def counted(*args: Any) -> Any:
        answers.append(await ask(*args))
        return answers[-1]

    monkeypatch.setattr(served.runtime.store, method, counted)
    return answers


@pytest.mark.requirement("readiness-cached")
@pytest.mark.parametrize(("path", "method"), PROBE_PATHS)
async def test_concurrent_probes_ask_the_store_once(
    served: Served, path: str, method: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(readiness, "CACHE_SECONDS", 3600)
    asked = counting(served, method, monkeypatch)
    responses = await asyncio.gather(*(served.http.get(path) for _ in range(CALLERS)))
    assert {response.status_code for response in responses} == {200}
    assert (await served.http.get(path)).status_code == 200
    assert len(asked) == 1


@pytest.mark.parametrize(("path", "method"), PROBE_PATHS)
async def test_probe_result_expires(served: Served, path: str, method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(readiness, "CACHE_SECONDS", 0)
    asked = counting(served, method, monkeypatch)
    for _ in range(2):
        assert (await served.http.get(path)).status_code == 200
    assert len(asked) == 2


@pytest.mark.parametrize(("path", "method"), PROBE_PATHS)
async def test_reason_of_a_failed_probe_is_logged_once_and_not_answered(
    served: Served, path: str, method: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def broken(*_: Any) -> None:
        raise StoreUnavailable("/secret/limelight.db: disk is full")

    monkeypatch.setattr(readiness, "CACHE_SECONDS", 3600)
    monkeypatch.setattr(served.runtime.store, method, broken)
    for response in await asyncio.gather(*(served.http.get(path) for _ in range(CALLERS))):
        assert response.status_code == 503
        assert "secret" not in response.text
    assert caplog.text.count("/secret/limelight.db: disk is full") == 1


async def test_cancelled_probe_does_not_cancel_the_shared_check() -> None:
    begun, may_end = asyncio.Event(), asyncio.Event()

    async def ask() -> int:
        begun.set()
        await may_end.wait()
        return 7

    question = readiness.CachedCheck(ask)
    hasty, patient = (asyncio.create_task(question.result()) for _ in range(2))
    await begun.wait()
    hasty.cancel()
    await eventually(hasty.done)
    may_end.set()
    assert await patient == 7


async def test_check_that_times_out_is_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    async def ask() -> int:
        await asyncio.Event().wait()
        return 7

    monkeypatch.setattr(readiness, "CHECK_SECONDS", 0.01)
    assert await readiness.CachedCheck(ask).result() == readiness.StoreFailure("it does not answer")
