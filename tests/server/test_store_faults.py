"""A store that fails for a while: requests are told what is wrong, live runs wait, and everything goes on by itself."""

import asyncio
import logging
import os
from collections.abc import AsyncGenerator, AsyncIterator
from pathlib import Path

import pytest

from limelight.messages import Message
from limelight.runs import sessions
from limelight.server import readiness
from limelight.sources.base import FileMade
from tests.stores.sqlite.files import move
from tests.support import agents
from tests.support.server import Frame, Served, asking, serving
from tests.support.wait import eventually

GONE = "the database file is gone"
SILENCE_SECONDS = 0.4


async def counting(messages: object, ctx: object) -> AsyncIterator[str]:
    """Counts, without ever giving way for long."""
    for number in range(10**6):
        yield f"{number} "
        if number % 10 == 0:
            await asyncio.sleep(0.001)


async def filing(messages: list[Message], ctx: object) -> AsyncIterator[str | FileMade]:
    """Makes one file, as soon as it can read what it was told to."""
    yield "here it comes, "
    await asyncio.to_thread(Path(messages[-1].text).read_bytes)
    yield FileMade(name="f.txt", data=b"a file", media_type="text/plain")
    yield "there it is"


@pytest.fixture
async def served(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncGenerator[Served]:
    monkeypatch.setattr(readiness, "CACHE_SECONDS", 0)
    async with serving(counting, data=tmp_path / "data", limits__silence_seconds=SILENCE_SECONDS) as served:
        yield served


@pytest.fixture
def database(tmp_path: Path) -> Path:
    return tmp_path / "data" / "limelight.db"


async def follow(served: Served, found: list[Frame]) -> None:
    async for frame in served.ask("go", session_id="s", format="records"):
        found.append(frame)


async def test_it_is_said_in_words_and_ends_by_itself(
    served: Served, database: Path, caplog: pytest.LogCaptureFixture
) -> None:
    found: list[Frame] = []
    following = asyncio.create_task(follow(served, found))
    await eventually(lambda: len(found) > 20)
    aside = move(database, database.with_name("aside.db"))
    ready = await served.http.get("/ready")
    assert (ready.status_code, ready.json()["checks"]["store"]) == (503, f"failed: {GONE}")
    assert (await served.http.get("/health")).json() == {"status": "ok"}
    refused = await served.http.post("/chat", json=asking("hi", session_id="other"))
    problem = refused.json()
    assert (refused.status_code, problem["code"]) == (503, "store_unavailable")
    assert GONE in problem["detail"] and str(database) not in refused.text
    assert int(refused.headers["retry-after"]) == problem["retry_after"] > 0
    assert (await served.http.get("/sessions/s")).json()["run_state"] == "running"  # reading goes on

    await asyncio.sleep(3 * SILENCE_SECONDS)  # the agent is silent for too long, and cannot help it
    before = len(found)
    assert not following.done()
    move(aside, database)
    await eventually(lambda: len(found) > before + 50)
    assert (await served.http.get("/ready")).status_code == 200
    await served.http.post(f"/runs/{found[0].data['run_id']}/cancel")
    await following
    assert [frame.data["seq"] for frame in found] == list(range(1, len(found) + 1))
    assert found[-1].data["event"]["kind"] == "run_cancelled"
    told = [record for record in caplog.records if record.levelno >= logging.WARNING]
    assert [record.name for record in told] == ["limelight.stores.sqlite.health"] * 2, caplog.text


async def test_the_numbers_say_so_also_while_nobody_asks_for_anything(served: Served, database: Path) -> None:
    async def failing() -> float:
        await served.http.get("/ready")
        return (await served.http.get("/metrics")).text.count("\nlimelight_store_failing 1.0\n")

    assert not await failing()
    aside = move(database, database.with_name("aside.db"))
    assert await failing()
    move(aside, database)
    assert not await failing()


async def test_a_run_whose_end_cannot_be_written_is_not_called_ended(
    served: Served, database: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(sessions, "SEALING_SECONDS", 0.2)
    found: list[Frame] = []
    following = asyncio.create_task(follow(served, found))
    await eventually(lambda: len(found) > 20)
    aside = move(database, database.with_name("aside.db"))
    await served.runtime.drain()
    told = [record for record in caplog.records if record.name == "limelight.server.runtime"]
    assert [(record.levelname, vars(record)["run_id"]) for record in told] == [("ERROR", found[0].data["run_id"])]
    assert "is left open" in told[0].getMessage() and "the next start ends it" in told[0].getMessage()
    move(aside, database)
    await following


async def test_an_agent_that_is_ahead_has_to_wait(served: Served, database: Path) -> None:
    found: list[Frame] = []
    following = asyncio.create_task(follow(served, found))
    await eventually(lambda: len(found) > 20)
    aside = move(database, database.with_name("aside.db"))
    run_id = found[0].data["run_id"]
    live = served.runtime.sessions.live(run_id)
    assert live is not None
    buffer = live.execution._buffer  # pyright: ignore[reportPrivateUsage]
    await eventually(lambda: buffer.uncommitted >= 256)
    await asyncio.sleep(0.3)
    assert buffer.uncommitted < 300
    before = len(found)
    move(aside, database)
    await eventually(lambda: len(found) > before + 20)
    await served.http.post(f"/runs/{run_id}/cancel")
    await following


async def test_who_stops_a_run_meanwhile_is_heard(served: Served, database: Path) -> None:
    found: list[Frame] = []
    following = asyncio.create_task(follow(served, found))
    await eventually(lambda: len(found) > 20)
    aside = move(database, database.with_name("aside.db"))
    assert (await served.http.get("/ready")).status_code == 503
    answer = await served.http.post(f"/runs/{found[0].data['run_id']}/cancel")
    assert answer.is_success
    assert not following.done()  # the end is not in the log yet, so nobody is told
    move(aside, database)
    await following
    assert found[-1].data["event"]["kind"] == "run_cancelled"


async def test_a_file_is_stored_later(tmp_path: Path) -> None:
    fifo = tmp_path / "sign"
    make_fifo(fifo)
    async with serving(filing, data=tmp_path / "data") as served:
        database = tmp_path / "data" / "limelight.db"
        asked = asyncio.create_task(served.http.post("/chat", json=asking(str(fifo), session_id="s")))
        await eventually(lambda: served.runtime.sessions.count == 1)
        aside = move(database, database.with_name("aside.db"))
        await asyncio.to_thread(fifo.write_bytes, b"now")
        await asyncio.sleep(0.3)
        assert not asked.done()
        move(aside, database)
        answer = await asked
        assert (answer.status_code, answer.json()["message"]["content"]) == (200, "there it is")


def make_fifo(path: Path) -> None:
    os.mkfifo(path)


async def test_reading_goes_on_in_both_interfaces(tmp_path: Path, database: Path) -> None:
    async with serving(agents.echo, data=tmp_path / "data") as served:
        assert (await served.http.post("/chat", json=asking("hi", session_id="s"))).status_code == 200
        aside = move(database, database.with_name("aside.db"))
        paths = ["/sessions", "/api/v2/sessions", "/api/v2/sessions/s", "/api/v2/sessions/s/messages"]
        assert [(await served.http.get(path)).status_code for path in paths] == [200] * 4
        move(aside, database)


async def test_an_answer_that_cannot_come_any_more_is_refused(
    tmp_path: Path, database: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The end of a run that the store does not take does not hold up the end of the server."""
    monkeypatch.setattr(sessions, "SEALING_SECONDS", 0.2)
    async with serving(agents.patient, data=tmp_path / "data") as served:
        asked = asyncio.create_task(served.http.post("/chat", json=asking("hi")))
        await eventually(lambda: served.runtime.sessions.count == 1)
        aside = move(database, database.with_name("aside.db"))
        await served.runtime.drain()
        async with asyncio.timeout(20):
            assert (await asked).json()["code"] == "shutting_down"
        move(aside, database)
