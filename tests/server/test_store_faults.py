"""A store that fails for a while: requests are refused with the reason, live runs wait, and all continue afterwards."""

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
from tests.stores.sqlite.files import damage_last_page, move
from tests.support import agents
from tests.support.server import Frame, Served, asking, serving
from tests.support.wait import eventually

GONE = "the database file is gone"
SILENCE_SECONDS = 0.4


async def counter(messages: object, ctx: object) -> AsyncIterator[str]:
    """Counts, with short pauses."""
    for number in range(10**6):
        yield f"{number} "
        if number % 10 == 0:
            await asyncio.sleep(0.001)


async def file_maker(messages: list[Message], ctx: object) -> AsyncIterator[str | FileMade]:
    """Makes a file once it could read the path in the message."""
    yield "here it comes, "
    await asyncio.to_thread(Path(messages[-1].text).read_bytes)
    yield FileMade(name="f.txt", data=b"a file", media_type="text/plain")
    yield "there it is"


@pytest.fixture
async def served(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncGenerator[Served]:
    monkeypatch.setattr(readiness, "CACHE_SECONDS", 0)
    async with serving(counter, data=tmp_path / "data", limits__silence_seconds=SILENCE_SECONDS) as served:
        yield served


@pytest.fixture
def database(tmp_path: Path) -> Path:
    return tmp_path / "data" / "limelight.db"


async def follow(served: Served, found: list[Frame]) -> None:
    async for frame in served.ask("go", session_id="s", format="records"):
        found.append(frame)


async def test_missing_database_is_reported_in_words_and_runs_continue_when_it_is_back(
    served: Served, database: Path, caplog: pytest.LogCaptureFixture
) -> None:
    found: list[Frame] = []
    follower = asyncio.create_task(follow(served, found))
    await eventually(lambda: len(found) > 20)
    moved = move(database, database.with_name("moved.db"))
    ready = await served.http.get("/ready")
    assert (ready.status_code, ready.json()["checks"]["store"]) == (503, f"failed: {GONE}")
    assert (await served.http.get("/health")).json() == {"status": "ok"}
    refused = await served.http.post("/chat", json=asking("hi", session_id="other"))
    problem = refused.json()
    assert (refused.status_code, problem["code"]) == (503, "store_unavailable")
    assert GONE in problem["detail"] and str(database) not in refused.text
    assert int(refused.headers["retry-after"]) == problem["retry_after"] > 0
    assert (await served.http.get("/sessions/s")).json()["run_state"] == "running"  # reads still work

    await asyncio.sleep(3 * SILENCE_SECONDS)  # longer than the silence limit, but the store is the cause
    before = len(found)
    assert not follower.done()
    move(moved, database)
    await eventually(lambda: len(found) > before + 50)
    assert (await served.http.get("/ready")).status_code == 200
    await served.http.post(f"/runs/{found[0].data['run_id']}/cancel")
    await follower
    assert [frame.data["seq"] for frame in found] == list(range(1, len(found) + 1))
    assert found[-1].data["event"]["kind"] == "run_cancelled"
    logged = [record for record in caplog.records if record.levelno >= logging.WARNING]
    assert [record.name for record in logged] == ["limelight.stores.sqlite.faults"] * 2, caplog.text


async def test_store_failing_gauge_follows_the_database_file(served: Served, database: Path) -> None:
    async def failing() -> float:
        await served.http.get("/ready")
        return (await served.http.get("/metrics")).text.count("\nlimelight_store_failing 1.0\n")

    assert not await failing()
    moved = move(database, database.with_name("moved.db"))
    assert await failing()
    move(moved, database)
    assert not await failing()


async def test_drain_logs_a_run_as_left_open_if_its_end_cannot_be_written(
    served: Served, database: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(sessions, "SEALING_SECONDS", 0.2)
    found: list[Frame] = []
    follower = asyncio.create_task(follow(served, found))
    await eventually(lambda: len(found) > 20)
    moved = move(database, database.with_name("moved.db"))
    await served.runtime.drain()
    logged = [record for record in caplog.records if record.name == "limelight.server.runtime"]
    assert [(record.levelname, vars(record)["run_id"]) for record in logged] == [("ERROR", found[0].data["run_id"])]
    assert "is left open" in logged[0].getMessage() and "ends this run at its next start" in logged[0].getMessage()
    move(moved, database)
    await follower


async def test_stop_during_a_store_fault_takes_effect_when_the_store_is_back(served: Served, database: Path) -> None:
    found: list[Frame] = []
    follower = asyncio.create_task(follow(served, found))
    await eventually(lambda: len(found) > 20)
    moved = move(database, database.with_name("moved.db"))
    assert (await served.http.get("/ready")).status_code == 503
    answer = await served.http.post(f"/runs/{found[0].data['run_id']}/cancel")
    assert answer.is_success
    assert not follower.done()  # the end is not committed, so it is not delivered
    move(moved, database)
    await follower
    assert found[-1].data["event"]["kind"] == "run_cancelled"


async def test_file_made_during_a_store_fault_is_stored_when_the_store_is_back(tmp_path: Path) -> None:
    fifo = tmp_path / "sign"
    os.mkfifo(fifo)
    async with serving(file_maker, data=tmp_path / "data") as served:
        database = tmp_path / "data" / "limelight.db"
        asked = asyncio.create_task(served.http.post("/chat", json=asking(str(fifo), session_id="s")))
        writers: list[int] = []
        await eventually(lambda: writers.extend(writer_of(fifo)) or writers)
        moved = move(database, database.with_name("moved.db"))
        os.close(writers[0])  # the agent continues
        await asyncio.sleep(0.3)
        assert not asked.done()
        move(moved, database)
        answer = await asked
        assert (answer.status_code, answer.json()["message"]["content"]) == (200, "there it is")


def writer_of(fifo: Path) -> list[int]:
    """Open a FIFO for writing and return its descriptor; an empty list if no process reads it."""
    try:
        return [os.open(fifo, os.O_WRONLY | os.O_NONBLOCK)]
    except OSError:
        return []


@pytest.mark.requirement("store-fault-reads")
async def test_reads_work_in_both_interfaces_during_a_store_fault(tmp_path: Path, database: Path) -> None:
    async with serving(agents.echo, data=tmp_path / "data") as served:
        assert (await served.http.post("/chat", json=asking("hi", session_id="s"))).status_code == 200
        moved = move(database, database.with_name("moved.db"))
        paths = ["/sessions", "/api/v2/sessions", "/api/v2/sessions/s", "/api/v2/sessions/s/messages"]
        assert [(await served.http.get(path)).status_code for path in paths] == [200] * 4
        move(moved, database)


async def test_complete_answer_is_refused_if_the_server_stops_during_a_store_fault(
    tmp_path: Path, database: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run whose end cannot be stored does not delay the shutdown."""
    monkeypatch.setattr(sessions, "SEALING_SECONDS", 0.2)
    async with serving(agents.patient, data=tmp_path / "data") as served:
        asked = asyncio.create_task(served.http.post("/chat", json=asking("hi")))
        await eventually(lambda: served.runtime.sessions.count == 1)
        moved = move(database, database.with_name("moved.db"))
        await served.runtime.drain()
        async with asyncio.timeout(20):
            assert (await asked).json()["code"] == "shutting_down"
        move(moved, database)


@pytest.mark.requirement("damaged-database")
async def test_damage_from_before_the_start_makes_the_server_not_ready(tmp_path: Path) -> None:
    data = tmp_path / "data"
    async with serving(agents.worker, data=data) as served:
        for number in range(20):
            await served.http.post("/chat", json=asking("go", session_id=f"s{number}"))
    damage_last_page(data / "limelight.db")
    async with serving(agents.worker, data=data) as served:
        await eventually(lambda: served.runtime.store.is_failing)
        ready = await served.http.get("/ready")
        assert ready.status_code == 503
        assert "the database is damaged" in ready.json()["checks"]["store"]
        assert "limelight restore BACKUP" in ready.json()["checks"]["store"]
        assert (await served.problem("POST", "/chat", json=asking("go")))["code"] == "store_unavailable"
