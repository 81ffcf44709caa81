"""One agent never blocks another: neither by sleeping without asyncio nor by flooding."""

import asyncio
from pathlib import Path

import pytest

from tests import agents
from tests.serving import asking, collect, serving, text_of


@pytest.mark.parametrize("name", ["sleeper", "burster"])
async def test_others_go_on_meanwhile(tmp_path: Path, name: str) -> None:
    async with serving(agents.talker, agents.sleeper, agents.bursting(20_000), data=tmp_path) as served:
        busy = asyncio.create_task(collect(served.ask("go", agent=name)))
        answered = 0
        while not busy.done() and answered < 200:
            assert (await served.http.get("/health")).status_code == 200
            other = (await served.http.post("/chat", json=asking("hi"))).json()
            assert other["message"]["content"] == "".join(agents.WORDS)
            answered += 1
        assert answered >= 3
        assert text_of(await busy).endswith(" awake" if name == "sleeper" else "19999 ")
