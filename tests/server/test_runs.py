"""Runs over HTTP: state, resume, Stop, decisions, complete values, files."""

import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterator, Iterator
from contextlib import aclosing
from pathlib import Path
from typing import Any

import msgspec
import pytest

from limelight.client import Client
from limelight.events import AnyEvent, FinalAnswer, Status, ToolFinished, ToolStarted
from limelight.messages import Message
from limelight.models import Run
from limelight.redaction.rules import REDACTED
from limelight.sources.base import Context
from tests.server.keyed_server import user_of
from tests.support import agents
from tests.support.server import Served, asking, collect, serving, text_of
from tests.support.wait import eventually


async def start(served: Served, agent: str, session_id: str = "s") -> str:
    """Begin a run, wait for its first frame, disconnect, and return its id."""
    async with served.http.stream("POST", "/chat/stream", json=asking("go", agent=agent, session_id=session_id)) as r:
        async for line in r.aiter_lines():
            if '"token"' in line or '"approval"' in line:
                break
        return r.headers["x-run-id"]


async def state_of(served: Served, run_id: str) -> str:
    return (await served.http.get(f"/runs/{run_id}")).json()["state"]


async def test_run_has_its_state_and_times(served: Served) -> None:
    run_id = await start(served, "patient")
    run = (await served.http.get(f"/runs/{run_id}")).json()
    assert run.keys() == {
        "run_id", "session_id", "agent", "request_id", "state", "started_at", "ended_at", "error", "approvals",
    }  # fmt: skip
    assert (run["state"], run["agent"], run["session_id"]) == ("running", "patient", "s")
    assert run["ended_at"] is None
    await served.http.post(f"/runs/{run_id}/cancel")
    run = (await served.http.get(f"/runs/{run_id}")).json()
    assert run["state"] == "cancelled"
    assert run["ended_at"] >= run["started_at"]


@pytest.mark.requirement("one-terminal-event")
async def test_failed_run_has_its_error_in_the_stream_and_in_its_state(served: Served) -> None:
    found = await collect(served.ask("go", agent="crasher", session_id="s"))
    assert [f.type for f in found[-4:]] == ["tool_end", "token", "error", "done"]
    text, error = (frame.data["data"] for frame in found[-3:-1])
    assert (text["content"].strip(), text["fallback_for"]) == (f"Error: {error['message']}", "error")
    assert (error["code"], error["message"]) == ("agent_error", "ValueError: the wheel came off")
    run_id = (await served.http.get("/sessions/s")).json()["run_id"]
    state_error = (await served.http.get(f"/runs/{run_id}")).json()["error"]
    assert state_error == {"code": "agent_error", "message": error["message"], "error_id": error["error_id"]}


async def test_finished_run_replays_in_any_format(served: Served) -> None:
    live = await collect(served.ask("go", agent="worker", session_id="s"))
    run_id = (await served.http.get("/sessions/s")).json()["run_id"]
    again = await collect(served.stream("GET", f"/runs/{run_id}/stream"))
    assert [f.data for f in again if f.type != "token"] == [f.data for f in live if f.type != "token"]
    assert text_of(again) == text_of(live)
    records = await collect(served.stream("GET", f"/runs/{run_id}/stream", params={"format": "records"}))
    assert [f.data["seq"] for f in records] == list(range(1, len(records) + 1))


async def test_last_event_id_wins_over_the_query(served: Served) -> None:
    live = await collect(served.ask("go", agent="worker", session_id="s"))
    run_id = (await served.http.get("/sessions/s")).json()["run_id"]
    cut = live[5].id
    rest = await collect(
        served.stream("GET", f"/runs/{run_id}/stream", params={"after": "0"}, headers={"last-event-id": cut})
    )
    assert rest == live[6:]


@pytest.mark.requirement("ended-run-204")
async def test_cursor_at_the_end_of_a_finished_run_gets_204(served: Served) -> None:
    live = await collect(served.ask("go", session_id="s"))
    run_id = (await served.http.get("/sessions/s")).json()["run_id"]
    for cursor in (live[-1].id, "99999"):
        response = await served.http.get(f"/runs/{run_id}/stream", params={"after": cursor})
        assert (response.status_code, response.content) == (204, b"")


@pytest.mark.requirement("ended-run-204")
@pytest.mark.parametrize("agent", ["worker", "crasher", "patient"])
@pytest.mark.parametrize("format_", ["typed", "tool_calls", "v2", "records"])
async def test_client_that_reconnects_after_the_last_frame_gets_204_in_every_format(
    served: Served, format_: str, agent: str
) -> None:
    """In v2, `run_finished` has no frame, so the last frame of a finished run has a smaller cursor than its log."""
    run_id = await start(served, agent)
    if agent == "patient":
        await served.http.post(f"/runs/{run_id}/cancel")
    frames = await collect(served.stream("GET", f"/runs/{run_id}/stream", params={"format": format_}))
    path, format_param = f"/runs/{run_id}/stream", {"format": format_}
    again = await served.http.get(path, params=format_param, headers={"last-event-id": frames[-1].id})
    assert (again.status_code, again.content) == (204, b"")
    rest = await collect(served.stream("GET", path, params=format_param, headers={"last-event-id": frames[-2].id}))
    assert rest == frames[-1:]


async def test_resume_inside_a_record_is_exact(served: Served) -> None:
    live = await collect(served.ask("go", agent="crasher", session_id="s"))
    assert [frame.id for frame in live[-3:]] == [f"{live[-1].id}.1", f"{live[-1].id}.2", live[-1].id]
    run_id = (await served.http.get("/sessions/s")).json()["run_id"]
    for count in (1, 2):
        rest = await collect(served.stream("GET", f"/runs/{run_id}/stream", params={"after": live[-1 - count].id}))
        assert rest == live[-count:]


async def test_seqs_continue_over_the_runs_of_a_session(served: Served) -> None:
    first = await collect(served.ask("one", session_id="s"))
    second = await collect(served.ask("two", session_id="s"))
    assert int(second[0].id) > int(first[-1].id)
    run_id = (await served.http.get("/sessions/s")).json()["run_id"]
    whole = await collect(served.stream("GET", f"/runs/{run_id}/stream", params={"after": "0"}))
    assert whole[0].id == second[0].id
    assert text_of(whole) == text_of(second)


@pytest.mark.parametrize("cursor", ["x", "-1", "1.x", "1.2.3", "٣", "9" * 40])
async def test_bad_cursor_is_refused(served: Served, cursor: str) -> None:
    await collect(served.ask("go", session_id="s"))
    run_id = (await served.http.get("/sessions/s")).json()["run_id"]
    problem = await served.problem("GET", f"/runs/{run_id}/stream", params={"after": cursor})
    assert (problem["status"], problem["code"]) == (400, "bad_cursor")


@pytest.mark.requirement("unknown-run-404")
@pytest.mark.parametrize("path", ["", "/stream", "/tools/x", "/input", "/answer"])
async def test_unknown_run_is_404_before_any_stream(served: Served, path: str) -> None:
    problem = await served.problem("GET", f"/runs/run_unknown{path}")
    assert (problem["status"], problem["code"]) == (404, "run_not_found")


async def test_stop_of_an_ended_run_has_no_effect_and_of_an_unknown_one_is_404(served: Served) -> None:
    run_id = (await served.http.post("/chat", json=asking("go"))).json()["run_id"]
    assert (await served.http.post(f"/runs/{run_id}/cancel")).json() == {"run_id": run_id, "state": "finished"}
    assert (await served.problem("POST", "/runs/nope/cancel"))["code"] == "run_not_found"


@pytest.mark.requirement("stop")
async def test_stop_does_not_wait_for_a_read_of_the_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with serving(agents.patient, data=tmp_path) as served:
        run_id = await start(served, "patient")
        live, may_read = served.runtime.control.live_run(run_id), asyncio.Event()
        assert live is not None

        async def read(run_id: str) -> Run | None:
            await may_read.wait()
            return await real(run_id)

        real = served.runtime.store.run
        monkeypatch.setattr(served.runtime.store, "run", read)
        stopping = asyncio.create_task(served.http.post(f"/runs/{run_id}/cancel"))
        await eventually(live.task.done)
        may_read.set()
        assert (await stopping).json() == {"run_id": run_id, "state": "cancelled"}


@pytest.mark.requirement("owner-only")
async def test_stop_of_a_live_run_of_another_user_is_404_and_stops_nothing(served: Served) -> None:
    run_id = await start(served, "patient")
    other = {"x-limelight-user-id": "somebody-else"}
    assert (await served.problem("POST", f"/runs/{run_id}/cancel", headers=other))["code"] == "run_not_found"
    assert await state_of(served, run_id) == "running"


@pytest.mark.requirement("stop")
async def test_stop_in_an_async_tool_keeps_the_log(served: Served) -> None:
    run_id = await start(served, "patient")
    stopped = await served.http.post(f"/runs/{run_id}/cancel", json={"reason": "enough"})
    assert stopped.json() == {"run_id": run_id, "state": "cancelled"}
    found = await collect(served.stream("GET", f"/runs/{run_id}/stream"))
    assert text_of(found) == "Working"
    assert [f.type for f in found[-4:]] == ["tool_end", "status", "cancelled", "done"]
    assert found[-4].data["data"]["error"] == "stopped"
    assert found[-2].data["data"] == {"reason": "enough"}
    assert (await served.http.post("/chat", json=asking("next", session_id="s"))).status_code == 200


async def test_stop_closes_open_generators_of_the_agent(tmp_path: Path) -> None:
    closed: list[str] = []

    async def model() -> AsyncGenerator[str]:
        try:
            while True:
                yield "token "
                await asyncio.sleep(0.001)
        finally:
            closed.append("provider's stream")

    async def agent(messages: object, ctx: object) -> AsyncIterator[str]:
        async with aclosing(model()) as tokens:
            async for token in tokens:
                yield token

    async with serving(agent, data=tmp_path) as served:
        run_id = await start(served, "agent")
        await served.http.post(f"/runs/{run_id}/cancel")
        assert closed == ["provider's stream"]
        assert await state_of(served, run_id) == "cancelled"


async def late_text(messages: object, ctx: object) -> AsyncIterator[str]:
    """Emits a text when it is cancelled, and ends normally."""
    try:
        yield "begun"
        await asyncio.sleep(3600)
    except asyncio.CancelledError:
        yield " saved"


@pytest.mark.requirement("first-cause-counts")
async def test_first_cause_of_an_end_counts(tmp_path: Path) -> None:
    async with serving(late_text, data=tmp_path, limits__run_seconds=0.2) as served:
        found = await collect(served.ask("go"))
        assert [f.type for f in found[-2:]] == ["error", "done"]
        assert found[-2].data["data"]["code"] == "run_timeout"
    async with serving(late_text, data=tmp_path) as served:
        run_id = await start(served, "late_text")
        assert (await served.http.post(f"/runs/{run_id}/cancel")).json()["state"] == "cancelled"
        found = await collect(served.stream("GET", f"/runs/{run_id}/stream"))
        assert text_of(found) == "begun saved"
        assert [f.type for f in found[-2:]] == ["cancelled", "done"]


@pytest.mark.requirement("stop-does-not-wait")
@pytest.mark.parametrize("agent", ["stubborn", "deaf"])
async def test_stop_does_not_wait_for_an_agent_that_ignores_it(served: Served, agent: str) -> None:
    run_id = await start(served, agent)
    assert (await served.http.post(f"/runs/{run_id}/cancel")).json()["state"] == "cancelled"
    found = await collect(served.stream("GET", f"/runs/{run_id}/stream"))
    statuses = [f.data["data"]["description"] for f in found if f.type == "status"]
    assert "cannot be interrupted" in statuses[-2]
    assert statuses[-1] == "Stopped"
    assert [f.type for f in found].count("done") == 1
    agents.stubborn_may_end.set()
    assert (await served.http.post("/chat", json=asking("next", session_id="s"))).json()["state"] == "finished"
    assert await collect(served.stream("GET", f"/runs/{run_id}/stream")) == found


@pytest.mark.requirement("run-survives-viewers")
async def test_run_continues_when_its_viewer_disconnects(tmp_path: Path) -> None:
    async with serving(agents.counting(300, 0.001), data=tmp_path) as served:
        run_id = await start(served, "counter")
        await eventually(lambda: served.runtime.sessions.count == 0)
        assert await state_of(served, run_id) == "finished"
        found = await collect(served.stream("GET", f"/runs/{run_id}/stream"))
        assert text_of(found) == "".join(f"{n} " for n in range(300))
        assert served.runtime.hub.viewers == 0


@pytest.mark.parametrize(
    ("decision", "result"),
    [
        ({"decision": "approve"}, "deleted /tmp/x"),
        ({"decision": "edit", "args": {"path": "/tmp/y"}}, "deleted /tmp/y"),
        ({"decision": "reject", "reason": "too bold"}, "Error: too bold"),
    ],
)
async def test_decision_reaches_the_agent_and_counts_once(
    served: Served, decision: dict[str, object], result: str
) -> None:
    run_id = await start(served, "asker")
    run = (await served.http.get(f"/runs/{run_id}")).json()
    assert run["state"] == "waiting"
    (approval,) = run["approvals"]
    assert (approval["name"], approval["args"]) == ("delete", {"path": "/tmp/x"})
    path = f"/runs/{run_id}/approvals/{approval['approval_id']}"
    assert (await served.http.post(path, json=decision)).json() == {"state": decision["decision"]}
    found = await collect(served.stream("GET", f"/runs/{run_id}/stream"))
    assert text_of(found) == f"decision: {decision['decision']} by {user_of(served)}"
    assert [f.data["data"]["state"] for f in found if f.type == "approval"] == ["requested", decision["decision"]]
    assert next(f.data["data"]["result"] for f in found if f.type == "tool_end") == result
    problem = await served.problem("POST", path, json={"decision": "approve"})
    assert (problem["status"], problem["code"]) == (409, "already_decided")


async def test_approval_can_be_decided_before_it_is_committed(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    """A client may read the state of a run before its events are committed."""
    may_write, append = asyncio.Event(), served.runtime.store.append

    async def slow(batch: Any) -> None:
        await may_write.wait()
        await append(batch)

    monkeypatch.setattr(served.runtime.store, "append", slow)
    asked = asyncio.create_task(served.http.post("/chat", json=asking("go", agent="asker", session_id="s")))
    run: dict[str, Any] = {}
    while not run.get("approvals"):
        session = await served.http.get("/sessions/s")
        if session.status_code == 200:
            run = (await served.http.get(f"/runs/{session.json()['run_id']}")).json()
    path = f"/runs/{run['run_id']}/approvals/{run['approvals'][0]['approval_id']}"
    assert (await served.http.post(path, json={"decision": "approve"})).json() == {"state": "approve"}
    may_write.set()
    assert (await asked).json()["message"]["content"] == f"decision: approve by {user_of(served)}"


async def test_approval_wait_does_not_count_for_the_run_timeout(tmp_path: Path) -> None:
    async def slow_after(messages: object, ctx: Context) -> AsyncIterator[str]:
        await ctx.approve("go on", {})
        await asyncio.sleep(1.2)
        yield "done"

    async with serving(slow_after, data=tmp_path, limits__run_seconds=2.5, limits__silence_seconds=2.2) as served:
        asked = served.ask("go", session_id="s")
        approval = (await collect(asked, until=lambda f: f.type == "approval"))[-1].data["data"]
        await asyncio.sleep(1.6)  # with the work afterwards, more than the limit of the run
        run_id = (await served.http.get("/sessions/s")).json()["run_id"]
        path = f"/runs/{run_id}/approvals/{approval['approval_id']}"
        await served.http.post(path, json={"decision": "approve"})
        assert text_of(await collect(asked)) == "done"


async def test_arguments_over_the_result_limit_are_marked_as_truncated(tmp_path: Path) -> None:
    async def careful(messages: object, ctx: Context) -> AsyncIterator[str]:
        approval = await ctx.approve("publish", {"text": "a" * 60_000})
        yield str(len(approval.args["text"]))

    async with serving(careful, data=tmp_path, limits__result_bytes=50_000) as served:
        run_id = await start(served, "careful")
        (shown,) = (await served.http.get(f"/runs/{run_id}")).json()["approvals"]
        cut = (await served.http.get(shown["result_url"])).json()
        assert (cut["truncated"], cut["args"]) == (True, '{"text":"' + "a" * (50_000 - 9))
        edit = {"decision": "edit", "args": {"text": REDACTED}}
        problem = await served.problem("POST", shown["result_url"], json=edit)
        assert (problem["code"], "too large to be stored completely" in problem["detail"]) == ("invalid", True)
        await served.http.post(shown["result_url"], json={"decision": "edit", "args": {"text": "b" * 70_000}})
        assert text_of(await collect(served.stream("GET", f"/runs/{run_id}/stream"))) == "70000"


async def test_complete_answer_has_the_sources_for_which_its_event_has_no_room(tmp_path: Path) -> None:
    answer = {"content": "Look.", "sources": [f"https://a.example/{'x' * 500}/{number}" for number in range(60)]}

    async def librarian(*_: object) -> AsyncIterator[FinalAnswer]:
        yield FinalAnswer(content=answer)

    async with serving(librarian, data=tmp_path) as served:
        given = (await served.http.post("/chat", json=asking("go"))).json()
        assert given["answer"]["sources"] == answer["sources"]
        assert (await served.http.get(f"/runs/{given['run_id']}/answer")).json() == answer


LONG = "They dance. " * 4_000


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        pytest.param(
            FinalAnswer(content=json.dumps({"title": "T", "content": {"title": "inner", "content": LONG}})),
            ("T", json.dumps({"title": "inner", "content": LONG}, separators=(",", ":"))),
            id="nested",
        ),
        pytest.param(
            FinalAnswer(content={"content": json.dumps({"title": "inner", "content": "c"}), "note": LONG}),
            ("", json.dumps({"title": "inner", "content": "c"})),
            id="nested beside much data",
        ),
        pytest.param(
            FinalAnswer(title="Mine", content=json.dumps({"title": "T", "content": LONG})),
            ("Mine", json.dumps({"title": "T", "content": LONG})),
            id="text with a title of its agent",
        ),
        pytest.param(
            FinalAnswer(title="Mine", sources=("A book",), content={"title": "T", "content": LONG, "sources": ["x"]}),
            ("Mine", LONG),
            id="object with a title of its agent",
        ),
        pytest.param(FinalAnswer(content=f"Final answer: {LONG}"), ("", LONG), id="prefix"),
    ],
)
async def test_complete_answer_has_the_parts_of_its_truncated_event(
    given: FinalAnswer, expected: tuple[str, str], tmp_path: Path
) -> None:
    async def librarian(*_: object) -> AsyncIterator[FinalAnswer]:
        yield given

    async with serving(librarian, data=tmp_path) as served:
        chat = (await served.http.post("/chat", json=asking("go"))).json()
        answer: dict[str, Any] = chat["answer"] or {"title": "", "sources": []}
        assert (answer["title"], chat["message"]["content"]) == expected
        assert answer["sources"] == list(given.sources)
        frames = await collect(served.stream("GET", f"/runs/{chat['run_id']}/stream", params={"format": "records"}))
        (shown,) = [frame.data["event"] for frame in frames if frame.data["event"]["kind"] == "final_answer"]
        assert shown["truncated"]
        assert shown.get("title", "") == expected[0]
        assert expected[1].startswith(shown["content"])


async def test_large_arguments_of_an_approval_are_truncated_and_readable(tmp_path: Path) -> None:
    args = {"text": "ä" * 60_000}

    async def careful(messages: object, ctx: Context) -> AsyncIterator[str]:
        approval = await ctx.approve("publish", args)
        yield str(len(approval.args["text"]))

    async with serving(careful, data=tmp_path) as served:
        run_id = await start(served, "careful")
        (shown,) = (await served.http.get(f"/runs/{run_id}")).json()["approvals"]
        assert (shown["truncated"], len(shown["args"])) == (True, 10_000)
        whole = (await served.http.get(shown["result_url"])).json()
        assert (whole["state"], whole["args"], whole["decided_at"]) == ("requested", args, None)
        assert not whole["truncated"]
        edited = {"text": "b" * 70_000}
        await served.http.post(shown["result_url"], json={"decision": "edit", "args": edited})
        assert text_of(await collect(served.stream("GET", f"/runs/{run_id}/stream"))) == "70000"
        decided = (await served.http.get(shown["result_url"])).json()
        assert (decided["state"], decided["edited_args"], decided["by"]) == ("edit", edited, "local")
        records = await collect(served.stream("GET", f"/runs/{run_id}/stream", params={"format": "records"}))
        (resolved,) = [frame.data for frame in records if frame.data["event"]["kind"] == "approval_resolved"]
        assert decided["decided_at"] == resolved["at"]
        assert (await served.problem("GET", f"/runs/{run_id}/approvals/x"))["code"] == "approval_not_found"


async def test_emit_without_end_fails_the_run(tmp_path: Path) -> None:
    async def flood(messages: object, ctx: Context) -> AsyncIterator[str]:
        for _ in range(10**6):
            ctx.emit(Status(text="x" * 1000))
        yield "never"

    def threads(messages: object, ctx: Context) -> Iterator[str]:
        for number in range(2_000):
            ctx.emit(Status(text=str(number)))
        yield "all"

    async with serving(flood, threads, data=tmp_path) as served:
        found = await collect(served.ask("go", agent="flood"))
        assert (found[-2].data["data"]["code"], found[-1].type) == ("bad_event", "done")
        found = await collect(served.ask("go", agent="threads"))
        assert (text_of(found), found[-1].type) == ("all", "done")
        statuses = [f.data["data"]["description"] for f in found if f.type == "status"]
        assert statuses[1:] == [str(number) for number in range(2_000)]


async def test_generator_in_a_thread_requests_approval(served: Served) -> None:
    run_id = await start(served, "thread_asker")
    await eventually(lambda: served.runtime.control.live_run(run_id).execution.grammar.waiting)  # pyright: ignore[reportOptionalMemberAccess]
    (approval,) = (await served.http.get(f"/runs/{run_id}")).json()["approvals"]
    await served.http.post(f"/runs/{run_id}/approvals/{approval['approval_id']}", json={"decision": "approve"})
    found = await collect(served.stream("GET", f"/runs/{run_id}/stream"))
    assert "use approve_blocking" in text_of(found)
    assert text_of(found).endswith("decision: approve")


async def test_invalid_decision_is_refused(served: Served) -> None:
    run_id = await start(served, "asker")
    (approval,) = (await served.http.get(f"/runs/{run_id}")).json()["approvals"]
    path = f"/runs/{run_id}/approvals/{approval['approval_id']}"
    assert (await served.problem("POST", path, json={"decision": "maybe"}))["errors"][0]["path"] == "decision"
    assert (await served.problem("POST", path, json={"decision": "edit"}))["errors"][0]["path"] == "args"
    unknown = await served.problem("POST", f"/runs/{run_id}/approvals/x", json={"decision": "approve"})
    assert unknown["code"] == "approval_not_found"
    await served.http.post(f"/runs/{run_id}/cancel")
    assert (await served.problem("POST", path, json={"decision": "approve"}))["code"] == "already_decided"


CALL_IDS = (
    "a/b",
    "..",
    "../..",
    "a/../../b",
    ".",
    "%2F",
    "a%2Fb",
    "a\nb",
    "a\n",
    "\r\n",
    "~x",
    "a\\b",
    "?raw=1#x",
    " ",
    "ü/é",
)


async def many_calls(messages: list[Message], ctx: Context) -> AsyncIterator[object]:
    for call_id in CALL_IDS:
        yield ToolStarted(call_id=call_id, name="read", args={"id": call_id})
        yield ToolFinished(call_id=call_id, result=f"{call_id} {'x' * 40_000}")


@pytest.mark.requirement("call-ids")
async def test_call_with_any_id_can_be_read_by_its_link_and_by_the_client(tmp_path: Path) -> None:
    async with serving(many_calls, data=tmp_path) as served, Client(served.url) as client:
        found = await collect(served.ask("go", session_id="s"))
        run_id = (await served.http.get("/sessions/s")).json()["run_id"]
        ends = [frame.data["data"] for frame in found if frame.type == "tool_end"]
        assert [end["tool_id"] for end in ends] == list(CALL_IDS)
        for end in ends:
            call_id = end["tool_id"]
            assert (await served.http.get(end["result_url"])).json()["call_id"] == call_id
            raw = await served.http.get(f"{end['result_url']}?raw=1")
            assert raw.text == f"{call_id} {'x' * 40_000}"
            assert (await client.result(run_id, call_id)).args == {"id": call_id}


@pytest.mark.parametrize("kept", [1_000_000, 100_001])
async def test_raw_result_is_sent_as_stored(tmp_path: Path, kept: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The stored bytes are sent without parsing them. A result that was cut off in the store is sent as text."""
    rows = ["ä" * 10] * 10_000
    written = msgspec.json.encode(rows)

    async def dumper(messages: list[Message], ctx: Context) -> AsyncIterator[str | AnyEvent]:
        yield ToolStarted(call_id="t", name="dump", args={})
        yield ToolFinished(call_id="t", result=rows)
        yield "Done."

    async with serving(dumper, data=tmp_path, limits__result_bytes=kept) as served:
        run_id = (await served.http.post("/chat", json=asking("go"))).json()["run_id"]
        if kept > len(written):
            monkeypatch.setattr("limelight.server.routes.runs.complete_value", None)
        raw = await served.http.get(f"/runs/{run_id}/tools/t", params={"raw": "1"})
    if kept > len(written):
        assert (raw.content, raw.headers["content-type"]) == (written, "application/json")
    else:
        assert raw.text == written[:kept].decode(errors="replace")
        assert raw.headers["content-type"] == "text/plain; charset=utf-8"


async def test_tool_route_returns_small_results(served: Served) -> None:
    run_id = (await served.http.post("/chat", json=asking("go", agent="worker"))).json()["run_id"]
    tool = (await served.http.get(f"/runs/{run_id}/tools/t1")).json()
    assert tool == {
        "call_id": "t1",
        "name": "search",
        "args": {"q": "bees"},
        "output": "searching\n",
        "result": {"hits": 3},
        "error": None,
        "outcome": "",
        "result_seen": True,
        "media_type": "application/json",
        "size": 10,
    }
    raw = await served.http.get(f"/runs/{run_id}/tools/t1", params={"raw": "1"})
    assert (raw.json(), raw.headers["content-type"]) == ({"hits": 3}, "application/json")
    assert (await served.http.get(f"/runs/{run_id}/tools/t3")).json()["error"] == "no luck"
    assert (await served.problem("GET", f"/runs/{run_id}/tools/t9"))["code"] == "tool_not_found"
    assert (await served.http.get(f"/runs/{run_id}/answer")).text == "Done."


@pytest.mark.requirement("files-are-downloads")
async def test_files_are_sent_as_downloads(served: Served) -> None:
    found = await collect(served.ask("go", agent="worker"))
    artifact = next(f.data["data"] for f in found if f.type == "artifact")
    assert (artifact["name"], artifact["size"]) == ("räport.txt", 8)
    response = await served.http.get(artifact["url"])
    assert response.content == b"a report"
    assert response.headers["content-disposition"] == "attachment; filename*=UTF-8''r%C3%A4port.txt"
    assert response.headers["x-content-type-options"] == "nosniff"
    assert (await served.problem("GET", "/artifacts/art_x"))["code"] == "artifact_not_found"


@pytest.mark.requirement("time-limits")
async def test_time_limits_end_a_run_but_not_an_approval_wait(tmp_path: Path) -> None:
    async def silent(messages: object, ctx: object) -> AsyncIterator[str]:
        yield "hello"
        await asyncio.sleep(3600)

    limits: dict[str, Any] = {"limits__run_seconds": 2.0, "limits__silence_seconds": 0.8}
    async with serving(
        silent, agents.patient, agents.asker, agents.counting(10**6, 0.001), data=tmp_path, **limits
    ) as served:
        # The wait for an approval has neither limit.
        waiting = served.ask("go", agent="asker", session_id="a")
        await collect(waiting, until=lambda f: f.type == "approval")
        names = ("silent", "patient", "counter")
        silent_run, *others = await asyncio.gather(*(collect(served.ask("go", agent=name)) for name in names))
        assert silent_run[-2].data["data"]["code"] == "silence_timeout"
        assert text_of(silent_run) == "hello"
        for found in others:  # a running tool is not silence, but the limit of the run applies
            assert found[-2].data["data"]["code"] == "run_timeout"
        run_id = (await served.http.get("/sessions/a")).json()["run_id"]
        assert await state_of(served, run_id) == "waiting"


@pytest.mark.requirement("approval-expires")
async def test_expired_approval_is_rejected_by_the_system(tmp_path: Path) -> None:
    async with serving(agents.asker, data=tmp_path, approvals__expiry_seconds=0.05) as served:
        found = await collect(served.ask("go", session_id="s"))
        assert text_of(found) == "decision: reject by system"
        run_id = (await served.http.get("/sessions/s")).json()["run_id"]
        approval_id = next(f.data["data"]["approval_id"] for f in found if f.type == "approval")
        problem = await served.problem("POST", f"/runs/{run_id}/approvals/{approval_id}", json={"decision": "approve"})
        assert (problem["status"], problem["code"]) == (410, "expired")
