"""Sessions and messages over HTTP."""

from pathlib import Path
from typing import Any

import pytest

from limelight.client import Client
from limelight.models import Run
from limelight.server import readiness
from tests.server.v2.socket_client import Json, socket, states, whole
from tests.support import agents
from tests.support.server import Served, serving


async def info(served: Served, session_id: str = "s") -> Json:
    response = await served.http.get(f"/api/v2/sessions/{session_id}")
    assert response.status_code == 200, response.text
    return response.json()


async def page(served: Served, **query: Any) -> Json:
    response = await served.http.get("/api/v2/sessions/s/messages", params=query)
    assert response.status_code == 200, response.text
    return response.json()


async def test_session_is_created_listed_and_deleted(served: Served) -> None:
    made = await served.http.post("/api/v2/sessions", json={"agent_type": "talker", "max_steps": 30})
    assert made.status_code == 200
    session_id = made.json()["session_id"]
    assert made.json() == {
        "session_id": session_id,
        "agent_type": "talker",
        "websocket_url": f"/api/v2/ws/{session_id}",
        "max_steps": 30,
    }
    state = await info(served, session_id)
    assert (state["state"], state["message_count"], state["max_steps"]) == ("idle", 0, 30)
    assert state["created_at"] == state["last_activity"] and state["created_at"].endswith("Z")
    assert (await served.http.get("/api/v2/sessions")).json() == [state]
    async with socket(served, session_id) as ws:
        assert (await ws.receive())["state"] == state
        frames = await ws.ask("hello")
    after = await info(served, session_id)
    assert (after["state"], after["message_count"], after["title"]) == ("completed", len(whole(frames)), "hello")
    assert after == frames[-1]["state"]
    assert (await served.http.delete(f"/api/v2/sessions/{session_id}")).json() == {"message": "Session deleted"}
    gone = await served.problem("DELETE", f"/api/v2/sessions/{session_id}")
    assert (gone["status"], gone["detail"], gone["code"]) == (404, "Session not found", "session_not_found")
    assert (await served.http.get("/api/v2/sessions")).json() == []


@pytest.mark.parametrize(
    ("body", "text"),
    [
        ({"agent_type": "nobody"}, "there is no agent_type 'nobody'; this server has: talker, echo"),
        ({"max_steps": 0}, "max_steps is a whole number from 1 to 100"),
        ({"max_steps": 101}, "max_steps is a whole number from 1 to 100"),
        ({"max_steps": -1}, "max_steps is a whole number from 1 to 100"),
        ({"max_steps": "ten"}, "max_steps is a whole number from 1 to 100"),
        ({"max_steps": 30.0}, "max_steps is a whole number from 1 to 100"),
        ({"max_steps": True}, "max_steps is a whole number from 1 to 100"),
        ({"agent_type": ""}, "there is no agent_type ''; this server has: talker, echo"),
        ({"agent_type": 7}, "there is no agent_type 7; this server has: talker, echo"),
    ],
)
async def test_invalid_session_is_refused(served: Served, body: Json, text: str) -> None:
    problem = await served.problem("POST", "/api/v2/sessions", json=body)
    assert problem["status"] == 422 and problem["detail"].startswith(text)
    assert problem["errors"][0]["path"] == next(iter(body))
    assert (await served.http.get("/api/v2/sessions")).json() == []


async def test_session_without_a_body_has_the_defaults(served: Served) -> None:
    for body in (b"", b"{}", b'{"agent_type": null, "max_steps": null}'):
        headers = {"content-type": "application/json"}
        made = (await served.http.post("/api/v2/sessions", content=body, headers=headers)).json()
        assert (made["agent_type"], made["max_steps"]) == ("talker", 25)


async def test_default_agent_is_codact(tmp_path: Path) -> None:
    async def codact(messages: object, ctx: object) -> str:
        return "code"

    async with serving(agents.talker, codact, data=tmp_path) as served:
        assert (await served.http.post("/api/v2/sessions")).json()["agent_type"] == "codact"


async def test_pages_of_messages_contain_the_conversation(served: Served) -> None:
    shown: list[Json] = []
    async with socket(served, agent_type="worker") as ws:
        for question in ("one", "two", "three"):
            shown += whole(await ws.ask(question))
    everything = await page(served, limit=10_000)
    assert (everything["messages"], everything["total"], everything["more"]) == (shown, len(shown), False)
    for limit in (1, 3, len(shown) // 3, len(shown) - 1, len(shown)):
        assert (await page(served, limit=limit))["messages"] == shown[-limit:]
        forwards, backwards = list[Json](), list[Json]()
        while (found := await page(served, limit=limit, after=(forwards or [{"cursor": 0}])[-1]["cursor"]))["more"]:
            forwards += found["messages"]
        while (back := await page(served, limit=limit, **_before(backwards)))["more"]:
            backwards = back["messages"] + backwards
        assert forwards + found["messages"] == back["messages"] + backwards == shown
        assert found["total"] == len(shown)


def _before(found: list[Json]) -> dict[str, str]:
    return {"before": found[0]["cursor"]} if found else {}


@pytest.mark.parametrize(
    ("query", "code"),
    [
        ("limit=0", "bad_request"),
        ("limit=-1", "bad_request"),
        ("limit=10001", "bad_request"),
        ("limit=x", "bad_request"),
        ("after=x", "bad_cursor"),
        ("before=x", "bad_cursor"),
        ("before=3&after=2", "bad_request"),
    ],
)
async def test_invalid_page_query_is_refused(served: Served, query: str, code: str) -> None:
    async with socket(served) as ws:
        await ws.ask("hello")
    problem = await served.problem("GET", f"/api/v2/sessions/s/messages?{query}")
    assert (problem["status"], problem["code"]) == (400, code)


async def test_session_messages_limit_bounds_pages(tmp_path: Path) -> None:
    async with serving(agents.talker, data=tmp_path, limits__session_messages=2) as served:
        async with socket(served) as ws:
            await ws.ask("hello")
        assert len((await page(served, limit=2))["messages"]) == 2
        assert len((await page(served))["messages"]) == 2
        async with socket(served) as ws:
            await ws.receive()
            await ws.send("get_messages")
            frames = await ws.until(lambda frame: frame.get("type") == "messages_end")
            assert (frames[-1]["count"], frames[-1]["more"]) == (2, True)
        async with Client(served.url) as client:
            assert len(await client.last_messages("s")) == 2
            assert len([message async for message in client.messages("s")]) == 5
        assert "from 1 to 2" in (await served.problem("GET", "/api/v2/sessions/s/messages?limit=3"))["detail"]


async def test_expired_session_is_readable_and_listed_again_after_a_query(tmp_path: Path) -> None:
    async with serving(agents.talker, data=tmp_path, store__expiry_seconds=0) as served:
        async with socket(served) as ws:
            await ws.ask("hello")
            assert (await info(served))["state"] == "expired"
            assert (await served.http.get("/api/v2/sessions")).json() == []
            assert len((await page(served))["messages"]) == 5
            assert states(await ws.ask("again")) == ["processing", "completed"]
        assert (await page(served))["total"] == 10


async def test_session_with_a_live_run_does_not_expire(tmp_path: Path) -> None:
    async with serving(agents.asker, data=tmp_path, store__expiry_seconds=0) as served, socket(served) as ws:
        await ws.send("query", query="delete")
        asked = await ws.until(lambda f: f.get("metadata", {}).get("message_type") == "approval_request")
        assert (await info(served))["state"] == "processing"
        assert [each["session_id"] for each in (await served.http.get("/api/v2/sessions")).json()] == ["s"]
        await ws.send("approve", approval_id=asked[-1]["metadata"]["approval_id"])
        await ws.until_state("completed")


async def test_message_count_is_right_during_a_run_and_stored_after_it(served: Served) -> None:
    async with socket(served, agent_type="patient") as ws:
        await ws.send("query", query="go")
        frames = await ws.until(lambda f: f.get("metadata", {}).get("message_type") == "tool_invocation")
        assert (await info(served))["message_count"] == len(whole(frames)) == len((await page(served))["messages"])
        await ws.send("cancel")
        frames += await ws.until_state("idle")
        assert (await info(served))["message_count"] == len(whole(frames))
        run = await served.runtime.store.run(frames[-1]["state"]["run_id"])
        assert run is not None and run.messages == len(whole(frames))


async def test_session_that_cannot_be_counted_does_not_hide_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The log has a Record that the dialect cannot encode."""
    async with serving(agents.talker, data=tmp_path) as served:
        for session_id in ("bad", "good"):
            async with socket(served, session_id) as ws:
                await ws.receive()
                await ws.ask(session_id)
        run_id = (await info(served, "bad"))["run_id"]
        of_run = served.runtime.message_counts._of_run  # pyright: ignore[reportPrivateUsage]

        async def fails(run: Run) -> int:
            if run.run_id == run_id:
                raise TypeError("no JSON")
            return await of_run(run)

        monkeypatch.setattr(served.runtime.message_counts, "_of_run", fails)
        listed = {one["session_id"]: one for one in (await served.http.get("/api/v2/sessions")).json()}
        assert (listed["good"]["message_count"], listed["bad"].get("message_count")) == (5, None)
        assert (await info(served, "bad"))["state"] == "completed"


async def test_all_sessions_are_listed_without_a_limit(served: Served) -> None:
    for _ in range(105):
        assert (await served.http.post("/api/v2/sessions")).status_code == 200
    assert len((await served.http.get("/api/v2/sessions")).json()) == 105
    assert len((await served.http.get("/api/v2/sessions?limit=7")).json()) == 7


async def test_health_counts_active_sessions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(readiness, "CACHE_SECONDS", 0)
    async with serving(agents.talker, data=tmp_path, auth__api_key="sesame") as served:
        health = (await served.http.get("/api/v2/health")).json()
        assert (health["status"], health["active_sessions"], health["version"]) == ("healthy", 0, "2.0.0")
        await served.http.post("/api/v2/sessions", headers={"authorization": "Bearer sesame"})
        assert (await served.http.get("/api/v2/health")).json()["active_sessions"] == 1
