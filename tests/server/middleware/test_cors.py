"""Preflights of pages of other origins, which need no key."""

import asyncio
from pathlib import Path

import pytest

from limelight.server.rate_limit import Throttle
from tests.support import agents
from tests.support.server import serving
from tests.support.wait import eventually

FRIEND = "https://app.example"
PREFLIGHT = {"origin": FRIEND, "access-control-request-method": "POST"}


async def test_preflights_wait_like_other_requests_without_a_user(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    throttle = Throttle(per_second=0.001, burst=1)
    monkeypatch.setattr("limelight.server.runtime.Throttle", lambda: throttle)
    async with serving(agents.echo, data=tmp_path, server__origins=[FRIEND]) as served:
        answer = await served.http.options("/chat", headers=PREFLIGHT)
        assert answer.headers["access-control-allow-origin"] == FRIEND
        waiting = asyncio.create_task(served.http.options("/chat", headers=PREFLIGHT))
        await eventually(lambda: throttle.waiting == 1)
        waiting.cancel()
        await eventually(lambda: throttle.waiting == 0)
