"""Sessions over HTTP: list, read, rename, delete, follow."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from limelight.ids import now_ms
from tests.support import agents
from tests.support.server import Served, asking, collect, serving, text_of
from tests.support.wait import eventually


async def ask(served: Served, session_id: str, text: str = "hi", agent: str = "talker") -> None:
    response = await served.http.post("/chat", json=asking(text, session_id=session_id, agent=agent))
    assert response.status_code in (200, 502), response.text


async def test_session_is_created_by_its_first_message(served: Served) -> None:
    await ask(served, "s", "Tell  me\nabout bees, " * 10)
    session = (await served.http.get("/sessions/s")).json()
    assert session["title"] == "Tell me about bees, Tell me about bees, Tell me about bees,"
    assert (session["state"], session["turns"], session["agent"]) == ("completed", 1, "talker")
    records = await collect(served.stream("GET", f"/runs/{session['run_id']}/stream", params={"format": "records"}))
    assert session["last_seq"] == int(records[-1].id) == len(records)
    assert (await served.problem("GET", "/sessions/other"))["code"] == "session_not_found"


async def test_session_state_follows_the_newest_run(served: Served) -> None:
    await ask(served, "fails", agent="crasher")
    stream = served.ask("go", agent="patient", session_id="works")
    await anext(stream)
    states = {s["session_id"]: s["state"] for s in (await served.http.get("/sessions")).json()["sessions"]}
    assert states == {"fails": "error", "works": "processing"}
    run_id = (await served.http.get("/sessions/works")).json()["run_id"]
    await served.http.post(f"/runs/{run_id}/cancel")
    assert (await served.http.get("/sessions/works")).json()["state"] == "idle"
    only = (await served.http.get("/sessions", params={"state": "error"})).json()["sessions"]
    assert [s["session_id"] for s in only] == ["fails"]
    assert (await served.problem("GET", "/sessions", params={"state": "odd"}))["errors"][0]["path"] == "state"


async def test_list_shows_sessions_that_wait_for_an_approval(served: Served) -> None:
    async for frame in served.ask("go", agent="asker", session_id="asks", format="records"):
        if frame.data["event"]["kind"] == "approval_requested":
            break
    (session,) = (await served.http.get("/sessions")).json()["sessions"]
    assert (session["state"], session["run_state"]) == ("processing", "waiting")
    await served.http.post(f"/runs/{session['run_id']}/cancel")
    assert (await served.http.get("/sessions/asks")).json()["run_state"] == "cancelled"


@pytest.mark.requirement("expiry-deletes-nothing")
async def test_session_expires_and_can_continue(tmp_path: Path) -> None:
    async with serving(agents.talker, data=tmp_path, store__expiry_seconds=0) as served:
        await ask(served, "s")
        await asyncio.sleep(0.002)  # expiry counts in milliseconds
        assert (await served.http.get("/sessions/s")).json()["state"] == "expired"
        await ask(served, "s")
        assert (await served.http.get("/sessions/s")).json()["turns"] == 2


async def test_list_is_paged_searched_and_newest_first(served: Served) -> None:
    for number in range(7):
        await ask(served, f"s{number}", f"question {number} {'odd' if number % 2 else 'even'}")
    seen: list[str] = []
    after = ""
    while True:
        params = {"limit": "3", **({"after": after} if after else {})}
        page = (await served.http.get("/sessions", params=params)).json()
        seen += [s["session_id"] for s in page["sessions"]]
        if page["next"] is None:
            break
        after = page["next"]
    assert seen == [f"s{n}" for n in reversed(range(7))]
    odd = (await served.http.get("/sessions", params={"q": "ODD"})).json()["sessions"]
    assert [s["session_id"] for s in odd] == ["s5", "s3", "s1"]
    assert (await served.http.get("/sessions", params={"q": "100%_"})).json()["sessions"] == []
    for bad in ({"after": "zzz!"}, {"limit": "0"}, {"limit": "x"}):
        assert (await served.problem("GET", "/sessions", params=bad))["status"] == 400


async def test_list_by_state_reads_in_batches(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(9):
        await ask(served, f"s{number}")
    reads: list[int] = []
    sessions = served.runtime.store.sessions

    async def counted(owner: str, **wanted: Any) -> Any:
        reads.append(wanted["limit"])
        return await sessions(owner, **wanted)

    monkeypatch.setattr(served.runtime.store, "sessions", counted)
    for state, found in (("error", 0), ("completed", 1)):
        page = (await served.http.get("/sessions", params={"state": state, "limit": "1"})).json()
        assert len(page["sessions"]) == found
    assert len(reads) <= 4 and min(reads) >= 100


async def test_rename_normalizes_and_checks_the_title(served: Served) -> None:
    await ask(served, "s")
    renamed = (await served.http.patch("/sessions/s", json={"title": "  My   bees "})).json()
    assert renamed["title"] == "My bees"
    for body in ({"title": ""}, {"title": "x" * 201}, {"title": 3}, {}):
        assert (await served.problem("PATCH", "/sessions/s", json=body))["status"] == 422
    assert (await served.problem("PATCH", "/sessions/none", json={"title": "x"}))["status"] == 404


@pytest.mark.requirement("delete-session")
async def test_delete_stops_the_run_and_removes_everything(served: Served) -> None:
    stream = served.ask("go", agent="patient", session_id="s")
    await anext(stream)
    run_id = (await served.http.get("/sessions/s")).json()["run_id"]
    live = served.runtime.control.live_run(run_id)
    assert live is not None
    workspace = live.context.workspace
    assert (await served.http.delete("/sessions/s")).status_code == 204
    assert not workspace.exists()
    for path in ("/sessions/s", f"/runs/{run_id}", f"/runs/{run_id}/stream"):
        assert (await served.problem("GET", path))["status"] == 404
    assert (await served.problem("DELETE", "/sessions/s"))["code"] == "session_not_found"
    await ask(served, "s", "anew")
    assert (await served.http.get("/sessions/s")).json()["turns"] == 1


@pytest.mark.requirement("delete-session")
async def test_delete_ends_the_streams_of_a_session(served: Served) -> None:
    await ask(served, "s", "one")
    await ask(served, "s", "two")
    seen: list[str] = []

    async def watch() -> None:
        async for frame in served.stream("GET", "/sessions/s/stream"):
            seen.append(frame.type)

    watcher = asyncio.create_task(watch())
    await eventually(lambda: seen.count("done") == 2)
    assert (await served.http.delete("/sessions/s")).status_code == 204
    await watcher
    anew = await collect(served.ask("anew", agent="echo", session_id="s"))
    assert anew[0].id == "1"
    assert text_of(anew).startswith("user:anew")
    await eventually(lambda: served.runtime.hub.viewers == 0)


async def test_session_stream_continues_over_its_runs(served: Served) -> None:
    await ask(served, "s", "one")
    follow = served.stream("GET", "/sessions/s/stream", params={"after": "0"})
    first = await collect(follow, until=lambda f: f.type == "done")
    assert text_of(first) == "".join(agents.WORDS)
    await ask(served, "s", "two", agent="echo")
    second = await collect(follow, until=lambda f: f.type == "done")
    assert text_of(second).startswith("user:two")
    resumed = served.stream("GET", "/sessions/s/stream", params={"after": second[0].id})
    assert await collect(resumed, until=lambda f: f.type == "done") == second[1:]


async def test_cursor_beyond_the_log_is_refused(served: Served) -> None:
    await ask(served, "s")
    problem = await served.problem("GET", "/sessions/s/stream", params={"after": "999"})
    assert (problem["status"], problem["code"]) == (400, "bad_cursor")


@pytest.mark.requirement("gap")
async def test_records_removed_by_retention_are_a_gap(served: Served) -> None:
    await ask(served, "s", "one")
    last = (await served.http.get("/sessions/s")).json()["last_seq"]
    await asyncio.sleep(0.002)  # the retention below must fall between the two runs
    before = now_ms()
    await ask(served, "s", "two")
    assert (await served.runtime.store.sweep(before)).runs == 1
    follow = served.stream("GET", "/sessions/s/stream", params={"after": "3"})
    found = await collect(follow, until=lambda f: f.type == "done")
    assert found[0].data == {"type": "gap", "data": {"from": 4, "to": last}}
    assert found[0].id == str(last)
    assert found[1].data["data"]["description"] == "Thinking..."
