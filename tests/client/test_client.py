"""Every method of the client with a real server."""

import json
import os
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

import limelight
from limelight.client import Busy, Client, ClientError, ConnectionLost, Gap, NotFound, ServerError, Unauthorized
from limelight.events import ArtifactMade, FinalAnswer, Record, RunCancelled, kind_of
from limelight.ids import now_ms
from tests.client.cutting_proxy import assert_complete, collect_records, response, scripted_responses
from tests.sources.langgraph import input_graphs
from tests.support import agents
from tests.support.server import Served, collect, offer, serving
from tests.support.wait import eventually

WORDS = "".join(agents.WORDS)


async def test_agents_lists_the_agents_of_the_server(client: Client) -> None:
    found = {agent.name: agent for agent in await client.agents()}
    assert found["talker"].default
    assert not found["echo"].default
    assert found["echo"].framework == "function"


async def test_start_returns_a_run_that_yields_all_records(client: Client) -> None:
    run = await client.start("hello", session_id="s")
    assert run.session_id == "s"
    info = await client.run(run.run_id)
    assert (info.run_id, info.session_id, info.agent) == (run.run_id, "s", "talker")
    found = [record async for record in run]
    assert [record.seq for record in found] == list(range(1, len(found) + 1))
    assert {record.run_id for record in found} == {run.run_id}
    assert (kind_of(found[0].event), kind_of(found[-1].event)) == ("run_started", "run_finished")
    assert [record async for record in run] == []
    assert await run.text() == WORDS
    info = await client.run(run.run_id)
    assert (info.state, info.live, info.error) == ("finished", False, None)


async def test_text_of_a_run_is_complete_at_any_point_of_the_iteration(client: Client) -> None:
    assert await (await client.start("hello")).text() == WORDS
    run = await client.start("hello")
    _ = [await anext(run) for _ in range(4)]
    assert await run.text() == WORDS


async def test_start_sends_a_conversation_unchanged(client: Client) -> None:
    messages = [
        {"role": "user", "content": "a"},
        {"role": "assistant", "content": "b"},
        {"role": "user", "content": "c"},
    ]
    text = await (await client.start(messages, agent="echo", session_id="s")).text()
    assert text == "user:a|assistant:b|user:c for local/ in s"


async def test_text_of_a_truncated_answer_is_complete(tmp_path: Path) -> None:
    async with (
        serving(agents.bursting(20_000), data=tmp_path / "data") as served,
        Client(served.url) as client,
    ):
        run = await client.start("x")
        text = await run.text()
        assert text == "".join(f"{n} " for n in range(20_000))
        (answer,) = [
            r.event for r in await collect_records(client.follow(run.run_id)) if isinstance(r.event, FinalAnswer)
        ]
        assert answer.truncated


async def test_repeated_request_id_starts_one_run(client: Client) -> None:
    first = await client.start("hello", session_id="s", request_id="q")
    found = [record async for record in first]
    second = await client.start("hello", session_id="s", request_id="q")
    assert second.run_id == first.run_id
    assert_complete([record async for record in second], found)
    assert (await client.session("s")).turns == 1


async def test_follow_yields_the_records_after_a_seq(client: Client) -> None:
    await (await client.start("one", session_id="s")).text()
    run = await client.start("two", session_id="s")
    found = [record async for record in run]
    assert found[0].seq > 1
    assert_complete(await collect_records(client.follow(run.run_id)), found)
    assert await collect_records(client.follow(run.run_id, after=found[-3].seq)) == found[-2:]
    assert await collect_records(client.follow(run.run_id, after=found[-1].seq)) == []


async def test_export_yields_the_records_of_the_server(client: Client, served: Served) -> None:
    run = await client.start("go", agent="worker")
    await run.wait()
    path = f"/runs/{run.run_id}/stream"
    frames = await collect(served.stream("GET", path, params={"format": "records"}))
    assert [record async for record in client.export(run.run_id)] == [msgspec.convert(f.data, Record) for f in frames]


async def test_export_waits_for_the_end_of_a_live_run(client: Client) -> None:
    run = await client.start("go", agent="patient")
    exported = client.export(run.run_id)
    first = await anext(exported)
    assert await client.cancel(run.run_id, "enough") == "cancelled"
    whole = [first, *[record async for record in exported]]
    assert whole[-1].event == RunCancelled(reason="enough")


async def test_cancel_stops_a_run(client: Client) -> None:
    run = await client.start("go", agent="patient")
    async for record in run:
        if kind_of(record.event) == "tool_started":
            break
    assert await run.cancel() == "cancelled"
    assert await client.cancel(run.run_id) == "cancelled"
    assert await run.text() == "Working"
    assert (await client.run(run.run_id)).state == "cancelled"


async def test_result_and_artifact_return_complete_content(client: Client) -> None:
    run = await client.start("go", agent="big")
    await run.wait()
    whole = await client.result(run.run_id, "big/1")
    assert (whole.result, whole.args, whole.size) == ("x" * 300_000, {"text": "ä" * 60_000}, 300_000)
    run = await client.start("go", agent="worker")
    (made,) = [r.event async for r in run if isinstance(r.event, ArtifactMade)]
    assert await client.artifact(made.artifact_id) == b"a report"


async def test_ask_returns_the_answer_of_a_run(client: Client) -> None:
    answer = await client.ask("go", agent="worker", session_id="s")
    assert (answer.content, answer.session_id, answer.state) == ("Done.", "s", "finished")
    assert (answer.tools[0].call_id, answer.tools[0].result) == ("t1", {"hits": 3})
    assert (await client.run(answer.run_id)).state == "finished"
    assert (await client.session("s")).turns == 1


async def test_ask_returns_title_sources_and_value(tmp_path: Path) -> None:
    async with serving(agents.scholar, agents.talker, data=tmp_path) as served, Client(served.url) as client:
        structured = await client.ask("bees")
        assert (structured.title, structured.content) == ("Bees", "They **dance**.")
        assert (structured.sources, structured.value) == (("https://example.org/bees", "A book"), None)
        counted = await client.ask("numbers")
        assert (counted.content, counted.value) == ('{"numbers":[1,2]}', {"numbers": [1, 2]})
        plain = await client.ask("hi", agent="talker")
        assert (plain.title, plain.sources, plain.value) == ("", (), None)


async def test_failed_run_raises_server_error_with_its_code(client: Client) -> None:
    with pytest.raises(ServerError, match="the wheel came off") as asked:
        await client.ask("go", agent="crasher")
    run = await client.start("go", agent="crasher")
    with pytest.raises(ServerError, match="the wheel came off") as raised:
        await run.text()
    assert (raised.value.status, raised.value.code, raised.value.run_id) == (502, "agent_error", run.run_id)
    assert (asked.value.status, asked.value.code) == (502, "agent_error")
    info = await client.run(run.run_id)
    assert info.error is not None
    assert info.error.code == "agent_error"


async def test_start_in_a_busy_session_raises_or_cancels(client: Client) -> None:
    first = await client.start("go", agent="patient", session_id="s")
    with pytest.raises(Busy) as raised:
        await client.start("again", session_id="s")
    assert (raised.value.status, raised.value.code, raised.value.run_id) == (409, "session_busy", first.run_id)
    second = await client.start("instead", session_id="s", if_busy="cancel")
    assert await second.text() == WORDS
    assert (await client.run(first.run_id)).state == "cancelled"


async def test_start_in_a_busy_session_can_wait(client: Client) -> None:
    first = await client.start("go", agent="patient", session_id="s")
    stopped = await client.start("never", session_id="s", if_busy="wait")
    second = await client.start("then", session_id="s", if_busy="wait")
    assert (await client.run(second.run_id)).state == "queued"
    assert await stopped.cancel() == "cancelled"
    assert [(r.seq, kind_of(r.event)) async for r in stopped] == [(0, "run_started"), (0, "run_cancelled")]
    with pytest.raises(Busy):
        await stopped.text()
    await first.cancel()
    assert await second.text() == WORDS


async def test_queued_request_that_is_refused_raises(tmp_path: Path) -> None:
    async with serving(agents.patient, data=tmp_path) as served, Client(served.url) as client:
        await client.start("go", session_id="s")
        waiting = await client.start("then", session_id="s", if_busy="wait")
        served.runtime.sessions.close()
        with pytest.raises(ServerError, match="shutting down") as raised:
            await waiting.wait()
    assert raised.value.code == "shutting_down"
    assert not waiting.began


async def test_sessions_can_be_found_renamed_and_deleted(client: Client) -> None:
    for n in range(3):
        await client.ask(f"question {n}", session_id=f"s{n}")
    await client.rename("s1", "Bees & bears")
    assert [s.session_id async for s in client.sessions(q="bees &")] == ["s1"]
    assert [s.session_id async for s in client.sessions(state="error")] == []
    assert (await client.session("s1")).title == "Bees & bears"
    await client.delete("s1")
    with pytest.raises(NotFound) as raised:
        await client.session("s1")
    assert (raised.value.status, raised.value.code) == (404, "session_not_found")


async def test_sessions_are_fetched_in_pages(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    for n in range(5):
        await client.ask("hi", session_id=f"s{n}")
    monkeypatch.setattr("limelight.client.client.PAGE_SIZE", 2)
    assert sorted([s.session_id async for s in client.sessions()]) == [f"s{n}" for n in range(5)]


async def test_messages_are_fetched_in_pages() -> None:
    pages = [
        {"messages": [{"message_id": "a", "cursor": "1"}, {"message_id": "b", "cursor": "2.1"}], "more": True},
        {"messages": [{"message_id": "c", "cursor": "3"}], "more": False},
    ]
    responses = [response(json.dumps(page), content_type="application/json") for page in pages]
    async with scripted_responses(*responses) as server, Client(server.url) as client:
        assert [message.message_id async for message in client.messages("s")] == ["a", "b", "c"]
    assert [head.split()[1].partition("after=")[2] for head in server.requests] == ["0", "2.1"]


async def test_watch_yields_a_gap_for_deleted_records(client: Client, served: Served) -> None:
    await client.ask("one", session_id="s")
    last, before = (await client.session("s")).last_seq, now_ms() + 1
    await eventually(lambda: now_ms() > before)
    await client.ask("two", session_id="s")
    assert (await served.runtime.store.sweep(before)).runs == 1
    watching = client.watch("s", after=3)
    assert await anext(watching) == Gap(4, last)
    after_it = await anext(watching)
    assert isinstance(after_it, Record)
    assert after_it.seq == last + 1
    await watching.aclose()


@pytest.mark.parametrize("name", ["nope", "..", "a/b", "ä ?#%"])
async def test_missing_resources_raise_not_found(client: Client, name: str) -> None:
    for method in (client.run, client.cancel, client.answer, client.artifact, client.session, client.delete):
        with pytest.raises(NotFound) as raised:
            await method(name)
        assert raised.value.status == 404
    for stream in (client.follow(name), client.watch(name), client.export(name)):
        with pytest.raises(NotFound):
            await anext(stream)


async def test_invalid_requests_name_their_field(client: Client) -> None:
    with pytest.raises(ClientError) as raised:
        await client.start("x", session_id="no spaces")
    assert (raised.value.status, raised.value.code) == (422, "invalid")
    assert [error.path for error in raised.value.errors] == ["session_id"]
    with pytest.raises(NotFound, match="nobody"):
        await client.start("x", agent="nobody")
    with pytest.raises(ClientError) as raised:
        await anext(client.watch((await client.start("x")).session_id, after=999))
    assert raised.value.code == "bad_cursor"


async def test_client_sends_its_key_and_its_user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with serving(agents.echo, agents.talker, data=tmp_path / "data", auth__api_key="secret") as served:
        async with Client(served.url) as stranger, Client(served.url, key="wrong") as wrong:
            for client in (stranger, wrong):
                for attempt in (
                    client.agents(),
                    client.start("x"),
                    anext(client.follow("r")),
                    anext(client.watch("s")),
                ):
                    with pytest.raises(Unauthorized) as raised:
                        await attempt
                    assert (raised.value.status, raised.value.code) == (401, "unauthorized")
        monkeypatch.setenv("LIMELIGHT_API_KEY", "secret")
        monkeypatch.setenv("LIMELIGHT_URL", f"{served.url}/")
        async with Client(user_id="änn/50%", user_name="Änn Ø") as ann, Client(user_id="bob") as bob:
            assert (await ann.ask("hi", session_id="s")).content == "user:hi for änn/50%/Änn Ø in s"
            with pytest.raises(NotFound):
                await bob.session("s")
            assert [s.session_id async for s in ann.sessions()] == ["s"]


async def test_closed_client_raises_connection_lost(served: Served) -> None:
    client = Client(served.url)
    run = await client.start("x", agent="patient", session_id="s")
    await anext(run)
    await client.aclose()
    with pytest.raises(ConnectionLost, match="closed"):
        await client.agents()
    with pytest.raises(ConnectionLost):
        _ = [record async for record in run]
    async with Client(served.url) as other:
        assert await other.cancel(run.run_id) == "cancelled"


async def test_invalid_url_raises_client_error() -> None:
    for url in ("nonsense", "ftp://x", "http://host:port"):
        async with Client(url) as client:
            for attempt in (client.agents(), client.start("x"), anext(client.follow("r"))):
                with pytest.raises(ClientError, match="is not a valid address"):
                    await attempt


def test_package_imports_the_client_lazily_and_no_server() -> None:
    assert limelight.Client is Client
    assert limelight.SyncClient.__name__ == "SyncClient"
    assert limelight.events.Record is Record
    with pytest.raises(AttributeError, match="nothing"):
        _ = limelight.nothing  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType, reportUnknownVariableType]
    code = "import sys, limelight; limelight.Client; limelight.events.Record; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env={**os.environ})
    loaded = {name.partition(".")[0] for name in done.stdout.split()}
    assert "httpx" in loaded
    assert not loaded & {"starlette", "uvicorn", "fastapi", "typer", "sqlite3", "websockets"}
    assert not {name for name in done.stdout.split() if name.startswith(("limelight.server", "limelight.runs"))}


@pytest.mark.requirement("graph-input")
async def test_input_and_context_are_sent_by_every_method(tmp_path: Path) -> None:
    offered = [
        offer(input_graphs.typed_dict_input(), "report"),
        offer(input_graphs.with_dataclass_context(), "persona", context_from_request=True),
    ]
    values = {"topic": "bees", "audience": "all"}
    context = {"tone": "calm", "language": "en"}
    async with serving(agents=offered, data=tmp_path) as served, Client(served.url) as client:
        found = {agent.name: agent for agent in await client.agents()}
        assert found["report"].input_schema is not None and found["report"].question_key == "topic"
        assert found["persona"].context_schema is not None and found["persona"].context_from_request is True
        assert await (await client.start(agent="report", input=values)).text() == "bees for all, any length"
        answer = await client.ask("ants", agent="report", input={"audience": "all"})
        assert answer.content == "ants for all, any length"
        persona = await client.ask("hi", agent="persona", context=context)
        assert persona.content == "calm en small local"
        async with client.connect(agent="report", format="records") as ws:
            await ws.send(input=values)
            async for item in ws:
                if isinstance(item, Record) and isinstance(item.event, FinalAnswer):
                    assert item.event.content == "bees for all, any length"
                    break
        with pytest.raises(ClientError, match="expected a text, got 1"):
            await client.start(agent="report", input={"topic": 1, "audience": "x"})
        with pytest.raises(ValueError, match="messages or an input"):
            await client.start(agent="report")
