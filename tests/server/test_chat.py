"""POST /chat/stream and POST /chat: one turn, as a stream or as a complete answer."""

import asyncio
import base64
from collections.abc import AsyncGenerator, AsyncIterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from limelight.events import (
    AgentFinished,
    AgentStarted,
    AnyEvent,
    ApprovalRequested,
    ApprovalResolved,
    FinalAnswer,
    RunFinished,
    ToolFinished,
    ToolStarted,
)
from limelight.messages import Message
from limelight.models import NewRun, Run, SessionRef
from limelight.runs.run_context import RunContext
from limelight.server.routes import chat
from tests.server.keyed_server import user_of
from tests.support import agents
from tests.support.server import Served, asking, collect, serving, text_of
from tests.support.wait import eventually

NESTED: dict[str, Any] = {"title": "T", "content": {"title": "inner", "content": "Final answer: c"}}


async def test_turn_streams_from_thinking_to_done(served: Served) -> None:
    found = await collect(served.ask("hello"))
    assert found[0].data == {"type": "status", "data": {"description": "Thinking...", "agent_depth": 0}}
    assert found[-1].data == {"type": "done"}
    assert text_of(found) == "The quick brown fox jümps 🦊 over."
    assert [int(f.id) for f in found] == sorted({int(f.id) for f in found})


async def test_stream_headers_prevent_buffering(served: Served) -> None:
    async with served.http.stream("POST", "/chat/stream", json=asking("hi", session_id="s")) as response:
        assert response.headers["content-type"] == "text/event-stream; charset=utf-8"
        assert response.headers["cache-control"] == "no-cache, no-transform"
        assert response.headers["x-accel-buffering"] == "no"
        assert response.headers["x-run-id"].startswith("run_")
        assert response.headers["x-session-id"] == "s"
        raw = (await response.aread()).decode()
    assert raw.startswith("retry: ")
    assert "\r" not in raw
    assert raw.endswith('data: {"type":"done"}\n\n')


async def test_typed_frames_have_the_keys_of_the_original_document(served: Served) -> None:
    """The routing code of the document reads `data: ` lines and knows seven types with their keys."""
    needed = {
        "status": {"description", "agent_depth"},
        "tool_start": {"tool_id", "name", "agent_depth"},
        "tool_end": {"tool_id", "name", "result", "agent_depth"},
        "token": {"content", "agent_depth"},
        "agent_start": {"agent_id", "name", "depth"},
        "agent_end": {"agent_id", "depth"},
    }
    seen: set[str] = set()
    for frame in await collect(served.ask("go", agent="worker")):
        if frame.type in needed:
            assert needed[frame.type] <= frame.data["data"].keys()
            seen.add(frame.type)
    assert seen == needed.keys()


@pytest.mark.requirement("records-lossless")
async def test_records_format_contains_every_event(served: Served) -> None:
    found = [f.data for f in await collect(served.ask("go", agent="worker", format="records"))]
    assert [record["seq"] for record in found] == list(range(1, len(found) + 1))
    kinds = [record["event"]["kind"] for record in found]
    assert kinds[0] == "run_started"
    assert kinds[-2:] == ["final_answer", "run_finished"]
    assert found[0]["event"] == {"kind": "run_started", "agent": "worker", "input": "go", "framework": "function"}


async def test_complete_answer_contains_its_tools(served: Served) -> None:
    for path, body in (("/chat", {}), ("/chat/stream", {"stream": False})):
        answer = (await served.http.post(path, json=asking("go", agent="worker", **body))).json()
        assert answer["message"] == {"role": "assistant", "content": "Done."}
        assert answer["state"] == "finished"
        assert [tool["name"] for tool in answer["tools"]] == ["search", "task", "fail"]
        assert answer["tools"][0]["result"] == {"hits": 3}
        assert answer["tools"][2]["error"] == "no luck"
        assert all(tool["result_seen"] for tool in answer["tools"])
        assert answer["run_id"].startswith("run_")
        assert answer["session_id"]


async def refused(messages: list[Message], ctx: RunContext) -> AsyncGenerator[AnyEvent, None]:
    """Have a call rejected, and leave another open when the sub-agent that made it fails."""
    yield ToolStarted(call_id="t1", name="rm", args={})
    yield ApprovalRequested(approval_id="p", name="rm", args={}, call_id="t1")
    yield ApprovalResolved(approval_id="p", decision="reject", by="ann")
    yield ToolFinished(call_id="t1", error="ann said no")
    yield AgentStarted(agent_id="a", name="helper")
    yield ToolStarted(agent_id="a", call_id="t2", name="wait", args={})
    yield AgentFinished(agent_id="a", error="no luck")
    yield FinalAnswer(content="Not done.")
    yield RunFinished()


async def test_rejected_stopped_and_failed_calls_are_distinguishable_in_every_format(tmp_path: Path) -> None:
    expected = {"t1": "rejected", "t2": "stopped"}
    async with serving(refused, data=tmp_path) as served:
        answer = (await served.http.post("/chat", json=asking("go"))).json()
        assert {tool["call_id"]: tool["outcome"] for tool in answer["tools"]} == expected
        for call_id, outcome in expected.items():
            assert (await served.http.get(f"/runs/{answer['run_id']}/tools/{call_id}")).json()["outcome"] == outcome
        records = [f.data["event"] for f in await collect(served.ask("go", format="records"))]
        assert {e["call_id"]: e["outcome"] for e in records if e["kind"] == "tool_finished"} == expected
        ends = [f.data["data"] for f in await collect(served.ask("go")) if f.data["type"] == "tool_end"]
        assert {end["tool_id"]: end["outcome"] for end in ends} == expected
        flat = [f.data for f in await collect(served.ask("go", format="tool_calls"))]
        failed = [frame for frame in flat if frame["type"] == "tool_call_error"]
        assert {frame["tool_call_id"]: frame["outcome"] for frame in failed} == expected


async def test_tool_call_without_a_result_is_not_an_error_in_any_format(tmp_path: Path) -> None:
    async with serving(agents.forgetful, data=tmp_path) as served:
        answer = (await served.http.post("/chat", json=asking("go"))).json()
        (tool,) = answer["tools"]
        unseen = {"result": "No result seen", "error": None, "result_seen": False}
        assert tool == {**tool, **unseen, "duration_ms": None}
        whole = (await served.http.get(f"/runs/{answer['run_id']}/tools/t1")).json()
        assert whole == {**whole, **unseen}
        records = [f.data["event"] for f in await collect(served.ask("go", format="records"))]
        (finished,) = [event for event in records if event["kind"] == "tool_finished"]
        assert finished == {"kind": "tool_finished", "call_id": "t1", "result": "No result seen", "result_seen": False}
        (end,) = [f.data["data"] for f in await collect(served.ask("go")) if f.data["type"] == "tool_end"]
        assert (end["result"], end["result_seen"], "error" in end) == ("No result seen", False, False)
        flat = [f.data for f in await collect(served.ask("go", format="tool_calls"))]
        (complete,) = [frame for frame in flat if frame["type"] == "tool_call_complete"]
        assert (complete["result"], complete["result_seen"]) == ("No result seen", False)


async def test_complete_answer_contains_the_structured_answer(tmp_path: Path) -> None:
    async with serving(agents.scholar, agents.talker, data=tmp_path) as served:
        structured = (await served.http.post("/chat", json=asking("bees"))).json()
        assert structured["message"]["content"] == "They **dance**."
        sources = ["https://example.org/bees", "A book"]
        links = [{"title": "", "url": "https://example.org/bees"}, {"title": "A book", "url": ""}]
        parts = {"title": "Bees", "content": "They **dance**.", "sources": sources, "source_links": links, "data": None}
        assert structured["answer"] == parts
        value = (await served.http.post("/chat/stream", json=asking("numbers", stream=False))).json()
        assert value["message"]["content"] == '{"numbers":[1,2]}'
        no_sources: dict[str, Any] = {"sources": [], "source_links": []}
        assert value["answer"] == {"title": "", "content": {"numbers": [1, 2]}, **no_sources, "data": None}
        assert (await served.http.post("/chat", json=asking("hi", agent="talker"))).json()["answer"] is None


@pytest.mark.requirement("derived-once", "records-lossless")
async def test_nested_answer_is_the_same_in_the_log_and_in_every_format(tmp_path: Path) -> None:
    async def nested(*_: object) -> AsyncIterator[FinalAnswer]:
        yield FinalAnswer(content=NESTED)

    async with serving(nested, data=tmp_path) as served:
        chat = (await served.http.post("/chat", json=asking("go"))).json()
        store = served.runtime.store
        run = await store.run(chat["run_id"])
        assert run is not None
        (logged,) = [r.event for r in await store.records(run.ref, after=0, limit=99) if type(r.event) is FinalAnswer]
        inner = '{"title":"inner","content":"Final answer: c"}'
        assert (logged.title, logged.content, logged.data) == ("T", inner, NESTED)
        path = f"/runs/{chat['run_id']}/stream"
        records = [f.data["event"] for f in await collect(served.stream("GET", path, params={"format": "records"}))]
        assert msgspec.convert(records[-2], FinalAnswer) == logged
        typed = [f.data for f in await collect(served.stream("GET", path))]
        (answer,) = [frame["data"] for frame in typed if frame["type"] == "answer"]
        assert answer["content"] == chat["answer"]["content"] == chat["message"]["content"] == inner
        assert (answer["data"], chat["answer"]["data"]) == (NESTED, NESTED)
        assert [frame["data"]["content"] for frame in typed if frame["type"] == "token"] == [inner]
        messages = [f.data for f in await collect(served.stream("GET", path, params={"format": "v2"}))]
        (final,) = [m["metadata"] for m in messages if m["metadata"]["message_type"] == "final_answer"]
        assert final["answer_content"] == inner
        assert (await served.http.get(f"/runs/{chat['run_id']}/answer", params={"text": "1"})).text == inner


async def test_failed_run_of_a_complete_answer_is_502_with_its_code(served: Served) -> None:
    problem = await served.problem("POST", "/chat", json=asking("go", agent="crasher"))
    assert problem["status"] == 502
    assert problem["error_id"].startswith("err_")
    assert problem["code"] == "agent_error"
    assert problem["detail"] == "ValueError: the wheel came off"
    assert problem["run_id"].startswith("run_")


async def test_messages_of_all_roles_reach_the_agent(served: Served) -> None:
    messages = [
        {"role": "system", "content": "Be kind."},
        {"role": "user", "content": [{"type": "text", "text": "one"}, {"type": "text", "text": "two"}]},
        {"role": "assistant", "content": None, "tool_calls": [{"id": "1"}]},
        {"role": "tool", "tool_call_id": "1", "content": "three"},
        {"role": "user", "content": "four", "name": "ann"},
    ]
    answer = (await served.http.post("/chat", json={"messages": messages, "agent": "echo"})).json()
    text = "system:Be kind.|user:one\ntwo|assistant:|tool:three|user:four"
    assert answer["message"]["content"] == f"{text} for {user_of(served)}/ in {answer['session_id']}"


async def test_images_are_stored_as_artifacts(served: Served) -> None:
    picture = b"\x89PNG not really"
    url = "data:image/png;base64," + base64.b64encode(picture).decode()
    parts = [{"type": "text", "text": "look"}, {"type": "image_url", "image_url": {"url": url}}]
    body = {"messages": [{"role": "user", "content": parts}], "agent": "echo"}
    found = await collect(served.stream("POST", "/chat/stream", params={"format": "records"}, json=body))
    attachment = found[0].data["event"]["attachments"][0]
    assert attachment["media_type"] == "image/png"
    kept = await served.http.get(f"/artifacts/{attachment['artifact_id']}")
    assert kept.content == picture
    assert kept.headers["content-disposition"].startswith("attachment")


async def test_model_selects_an_agent_of_that_name_or_is_ignored(served: Served) -> None:
    named = await served.http.post("/chat", json=asking("hi", model="echo"))
    assert named.json()["message"]["content"].startswith("user:hi")
    other = await served.http.post("/chat", json=asking("hi", model="gpt-9", features={"x": 1}, metadata=None))
    assert other.json()["message"]["content"].startswith("The quick")


async def test_chat_id_is_another_name_of_session_id(served: Served) -> None:
    for key in ("session_id", "chat_id"):
        answer = (await served.http.post("/chat", json=asking("hi", **{key: f"by-{key}"}))).json()
        assert answer["session_id"] == f"by-{key}"


@pytest.mark.requirement("request-id-once")
async def test_same_request_id_starts_one_run(served: Served) -> None:
    body = asking("hi", session_id="s", request_id="r-1")
    first, again = [(await served.http.post("/chat", json=body)).json() for _ in range(2)]
    assert first["run_id"] == again["run_id"]
    streamed = await collect(served.ask("hi", session_id="s", request_id="r-1"))
    assert text_of(streamed) == first["message"]["content"]
    assert (await served.http.get("/sessions/s")).json()["turns"] == 1


@pytest.mark.requirement("busy-session")
async def test_busy_session_refuses_and_names_the_live_run(served: Served) -> None:
    live = served.ask("go", agent="patient", session_id="s")
    await anext(live)
    problem = await served.problem("POST", "/chat/stream", json=asking("hi", session_id="s"))
    assert (problem["status"], problem["code"]) == (409, "session_busy")
    assert problem["run_id"] == (await served.http.get("/sessions/s")).json()["run_id"]


async def test_queue_continues_after_a_stopped_request(served: Served) -> None:
    live = served.ask("go", agent="patient", session_id="s")
    await anext(live)
    first = (await served.http.get("/sessions/s")).json()["run_id"]
    async with served.http.stream("POST", "/chat/stream", json=asking("x", session_id="s", if_busy="wait")) as gone:
        queued = gone.headers["x-run-id"]
        waiting = served.runtime.queues.find(queued)
        assert waiting is not None
        last = asyncio.create_task(collect(served.ask("y", session_id="s", if_busy="wait")))
        await eventually(lambda: served.runtime.hub.viewers == 3)
        waiting.wake()
        waiting.stop("just when its turn came")
        await served.http.post(f"/runs/{first}/cancel")
        assert text_of(await last) == "The quick brown fox jümps 🦊 over."


async def test_queued_run_can_be_streamed_by_its_id(served: Served) -> None:
    live = served.ask("go", agent="patient", session_id="s")
    await anext(live)
    body = asking("later", session_id="s", if_busy="wait", agent="echo")
    async with served.http.stream("POST", "/chat/stream", json=body) as response:
        run_id = response.headers["x-run-id"]
        viewer = asyncio.create_task(collect(served.stream("GET", f"/runs/{run_id}/stream")))
        await eventually(lambda: served.runtime.hub.viewers == 3)
        first = (await served.http.get("/sessions/s")).json()["run_id"]
        await served.http.post(f"/runs/{first}/cancel")
        assert text_of(await viewer).startswith("user:later")


@pytest.mark.requirement("stop-in-queue")
async def test_queued_run_has_a_state_and_can_be_stopped(served: Served) -> None:
    live = served.ask("go", agent="patient", session_id="s")
    await anext(live)
    body = asking("later", session_id="s", if_busy="wait")
    async with served.http.stream("POST", "/chat/stream", json=body) as response:
        run_id = response.headers["x-run-id"]
        assert (await served.http.get(f"/runs/{run_id}")).json()["state"] == "queued"
        stopped = await served.http.post(f"/runs/{run_id}/cancel")
        assert stopped.json() == {"run_id": run_id, "state": "cancelled"}
        text = (await response.aread()).decode()
    assert '{"type":"cancelled","data":{"reason":"stopped by the user"}}' in text
    assert text.endswith('data: {"type":"done"}\n\n')
    assert (await served.http.get("/sessions/s")).json()["turns"] == 1


async def test_stream_that_starts_before_its_run_is_identified_has_no_run_id(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(chat, "START_SECONDS", 0.05)
    async with serving(agents.echo, data=tmp_path) as served:
        first = (await served.http.post("/chat", json=asking("hi", session_id="s", request_id="r"))).json()["run_id"]
        gate = asyncio.Event()
        requested = served.runtime.store.requested

        async def slow(ref: SessionRef, request_id: str) -> Run | None:
            await gate.wait()
            return await requested(ref, request_id)

        monkeypatch.setattr(served.runtime.store, "requested", slow)
        body, params = asking("hi", session_id="s", request_id="r"), {"format": "records"}
        async with served.http.stream("POST", "/chat/stream", json=body, params=params) as response:
            assert "x-run-id" not in response.headers
            gate.set()
            text = (await response.aread()).decode()
        assert first in text
        assert (await served.http.get("/sessions/s")).json()["turns"] == 1


@pytest.mark.requirement("no-traceback")
async def test_unexpected_error_after_the_stream_started_is_sent_without_details(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(chat, "START_SECONDS", 0.05)
    async with serving(agents.echo, data=tmp_path) as served:
        gate = asyncio.Event()

        async def failing(new: NewRun) -> Any:
            await gate.wait()
            raise ZeroDivisionError("a mistake in the store")

        monkeypatch.setattr(served.runtime.store, "begin", failing)
        stream = asyncio.create_task(collect(served.ask("hi")))
        await eventually(lambda: served.runtime.open_streams.count == 1)
        gate.set()
        frames = await stream
    assert [frame.type for frame in frames] == ["status", "token", "error", "done"]
    error = frames[2].data["data"]
    assert error["code"] == "internal"
    assert error["error_id"].startswith("err_")
    assert "mistake" not in str(frames)


@pytest.mark.requirement("refused-in-queue")
async def test_refusal_of_a_queued_run_is_sent_to_all_its_streams(tmp_path: Path) -> None:
    async with serving(agents.patient, data=tmp_path) as served:
        live = served.ask("go", session_id="s")
        await anext(live)
        body = asking("later", session_id="s", if_busy="wait", request_id="r")
        async with served.http.stream("POST", "/chat/stream", json=body) as response:
            run_id = response.headers["x-run-id"]
            again = asyncio.create_task(collect(served.stream("POST", "/chat/stream", json=body)))
            viewer = asyncio.create_task(collect(served.stream("GET", f"/runs/{run_id}/stream")))
            await eventually(lambda: served.runtime.hub.viewers == 4)
            served.runtime.sessions.close()
            text = (await response.aread()).decode()
        assert '"code":"shutting_down"' in text
        for frames in (await again, await viewer):
            assert [frame.type for frame in frames] == ["status", "token", "error", "done"]
            assert frames[2].data["data"]["code"] == "shutting_down"


REFUSED: list[tuple[str, dict[str, Any], int, str, str]] = [
    ("empty list", {"json": {"messages": []}}, 422, "empty_messages", "messages"),
    ("no user", {"json": {"messages": [{"role": "system", "content": "x"}]}}, 422, "empty_messages", "messages"),
    ("no messages", {"json": {"agent": "talker"}}, 422, "invalid", "messages"),
    ("wrong role", {"json": {"messages": [{"role": "boss", "content": "x"}]}}, 422, "invalid", "messages[0].role"),
    ("wrong content", {"json": {"messages": [{"role": "user", "content": 7}]}}, 422, "invalid", "messages[0].content"),
    ("not an object", {"json": [1, 2]}, 422, "invalid", "$"),
    ("bad session id", {"json": asking("x", session_id="a/b")}, 422, "invalid", "session_id"),
    ("long session id", {"json": asking("x", chat_id="a" * 129)}, 422, "invalid", "chat_id"),
    ("bad if_busy", {"json": asking("x", if_busy="maybe")}, 422, "invalid", "if_busy"),
    ("unknown agent", {"json": asking("x", agent="nobody")}, 404, "unknown_agent", "agent"),
    ("unknown format", {"json": asking("x"), "params": {"format": "morse"}}, 400, "unknown_format", "format"),
    (
        "broken JSON",
        {"content": b'{"messages": [', "headers": {"content-type": "application/json"}},
        400,
        "bad_json",
        "",
    ),
    ("not UTF-8", {"content": b'"\xff"', "headers": {"content-type": "application/json"}}, 400, "bad_json", ""),
    ("nested deep", {"content": b"[" * 100_000, "headers": {"content-type": "application/json"}}, 400, "bad_json", ""),
    ("form", {"data": {"messages": "x"}}, 415, "unsupported_media_type", ""),
    ("no type", {"content": b"{}"}, 415, "unsupported_media_type", ""),
]


@pytest.mark.parametrize(("options", "status", "code", "path"), [r[1:] for r in REFUSED], ids=[r[0] for r in REFUSED])
async def test_invalid_request_is_refused_with_code_and_path(
    served: Served, options: dict[str, Any], status: int, code: str, path: str
) -> None:
    for route in ("/chat/stream", "/chat"):
        if route == "/chat" and "params" in options:
            continue
        problem = await served.problem("POST", route, **options)
        assert (problem["status"], problem["code"]) == (status, code)
        assert [error["path"] for error in problem["errors"]] == ([path] if path else [])
        assert problem["detail"]
        assert problem["title"]


@pytest.mark.requirement("previews")
async def test_large_arguments_and_results_are_truncated_and_readable(served: Served) -> None:
    found = await collect(served.ask("go", agent="big"))
    start = next(f.data["data"] for f in found if f.type == "tool_start")
    end = next(f.data["data"] for f in found if f.type == "tool_end")
    assert len(end["result"]) == 10_000
    assert (end["truncated"], end["size"]) == (True, 300_000)
    assert start["truncated"] is True
    whole = (await served.http.get(end["result_url"])).json()
    assert whole["result"] == "x" * 300_000
    assert whole["args"] == {"text": "ä" * 60_000}
    assert (whole["media_type"], whole["size"]) == ("text/plain", 300_000)
    raw = await served.http.get(end["result_url"], params={"raw": "1"})
    assert raw.text == "x" * 300_000


async def test_long_question_is_truncated_and_readable(served: Served) -> None:
    question = "why? " * 20_000
    found = await collect(served.ask(question, format="records"))
    started = found[0].data["event"]
    assert started["truncated"] is True
    assert len(started["input"]) == 10_000
    assert (await served.http.get(started["result_url"])).text == question
