"""The socket of a session: commands and frames."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from limelight.messages import Message
from limelight.server.v2.socket import MESSAGE_BURST
from limelight.sources.base import Context
from tests.server.keyed_server import user_of
from tests.server.v2.socket_client import messages, socket, states, types, whole
from tests.support.server import Served, serving


async def test_conversation_has_states_and_unique_messages(served: Served) -> None:
    async with socket(served, agent_type="worker") as ws:
        assert states([await ws.receive()]) == ["idle"]
        frames = await ws.ask("hello")
        assert states(frames) == ["processing", "completed"]
        assert frames[0]["type"] == "state" and frames[-1]["type"] == "state"
        found = whole(frames)
        assert (found[0]["role"], found[0]["content"]) == ("user", "hello")
        assert found[0]["metadata"] == {"component": "chat", "message_type": "user", "status": "done"}
        assert (found[-1]["metadata"]["message_type"], found[-1]["content"]) == ("final_answer", "Done.")
        assert {message["session_id"] for message in messages(frames)} == {"s"}
        assert len({message["message_id"] for message in found}) == len(found)
        count = frames[-1]["state"]["message_count"]
        assert count == len(found)
        second = await ws.ask("again")
        assert second[-1]["state"]["message_count"] == count + len(whole(second))
        assert not {m["message_id"] for m in messages(second)} & {m["message_id"] for m in messages(frames)}


@pytest.mark.requirement("socket-commands-during-run")
async def test_commands_are_answered_during_a_run(served: Served) -> None:
    async with socket(served, agent_type="patient") as ws:
        await ws.send("query", query="go")
        await ws.until(lambda f: "metadata" in f and f["metadata"]["message_type"] == "tool_call")
        await ws.send("ping")
        await ws.send("get_state")
        await ws.send("get_messages", limit=2)
        await ws.send("query", query="and this?")
        frames = await ws.until_type("error")
        assert "pong" in types(frames)
        assert states(frames) == ["processing"]
        end = next(frame for frame in frames if frame.get("type") == "messages_end")
        assert (end["count"], end["more"]) == (2, True)
        assert frames[-1]["message"] == "Session is already processing a query"
        assert frames[-1]["error_code"] == "session_busy"
        await ws.send("cancel", reason="enough")
        ending = await ws.until_state("idle")
        assert ending[-2]["content"] == "Stopped"
        await ws.send("cancel")
        assert await ws.error() == ("Session is not processing a query", "not_processing")


@pytest.mark.requirement("socket-invalid-message")
@pytest.mark.parametrize(
    ("sent", "text", "code"),
    [
        ("{", "Invalid JSON", "bad_json"),
        ("", "Invalid JSON", "bad_json"),
        pytest.param("[" * 100_000, "Invalid JSON", "bad_json", id="deep"),
        (b'{"type": "ping"}', "Binary frames are not understood: send JSON as text", "bad_request"),
        ("[1]", 'Message must be a JSON object like {"type": "ping"}', "bad_request"),
        ('{"type": "dance"}', "Unknown message type: dance", "unknown_message_type"),
        ("{}", "Unknown message type: None", "unknown_message_type"),
        ('{"type": {"a": 1}}', "Unknown message type: {'a': 1}", "unknown_message_type"),
        ('{"type": "query"}', "Query is required", "invalid"),
        ('{"type": "query", "query": "  "}', "Query is required", "invalid"),
        ('{"type": "query", "query": 7}', "Query is required", "invalid"),
        ('{"type": "query", "query": "x", "if_busy": "no"}', "if_busy is error, cancel or wait", "invalid"),
        ('{"type": "get_messages", "limit": 0}', "limit is a whole number from 1 to 10000", "bad_request"),
        ('{"type": "get_messages", "after": 1, "before": 2}', "give either after or before", "bad_request"),
        ('{"type": "get_messages", "limit": "x"}', "limit: Expected `int`, got `str`", "invalid"),
        ('{"type": "get_messages", "after": "x"}', "a cursor is a number like 57 or 57.1, not 'x'", "bad_cursor"),
        ('{"type": "resume"}', "after: Object missing required field `after`", "invalid"),
        ('{"type": "resume", "after": 99}', "the log ends at 0: this cursor is from another one", "bad_cursor"),
        ('{"type": "approve", "approval_id": "a"}', "Session is not processing a query", "not_processing"),
        ('{"type": "approve", "approval_id": "a", "decision": "edit"}', "to edit, send the new args", "invalid"),
        ('{"type": "cancel", "request_id": "r"}', "Session is not processing that query", "not_processing"),
        pytest.param("x" * 10_000_000, "Message is larger than 1048576 bytes", "body_too_large", id="10 MB"),
    ],
)
async def test_invalid_command_is_answered_with_an_error_and_the_socket_stays_open(
    served: Served, sent: str | bytes, text: str, code: str
) -> None:
    async with socket(served) as ws:
        await ws.connection.send(sent)
        assert await ws.error() == (text, code)
        await ws.send("ping")
        assert (await ws.receive())["type"] == "pong"


async def test_each_ping_is_answered_once(served: Served) -> None:
    async with socket(served) as ws:
        await ws.receive()
        for _ in range(MESSAGE_BURST):
            await ws.send("ping")
        assert [await ws.receive() for _ in range(MESSAGE_BURST)] == [{"type": "pong"}] * MESSAGE_BURST


@pytest.mark.requirement("socket-many-watchers")
async def test_all_sockets_of_a_session_get_the_run_and_a_disconnect_does_not_stop_it(tmp_path: Path) -> None:
    everybody_is_here = asyncio.Event()

    async def counter(messages: list[Message], ctx: Context) -> AsyncIterator[str]:
        for number in range(300):
            yield f"{number} "
            if number == 100:
                await everybody_is_here.wait()

    async with serving(counter, data=tmp_path) as served, socket(served) as first, socket(served) as second:
        before = [await first.receive(), await second.receive()]
        async with socket(served) as third:
            await third.send("query", query="count")
            await third.until(lambda frame: "metadata" in frame and frame["metadata"].get("is_delta", False))
        async with socket(served) as late:
            seen = [await late.receive()]
            everybody_is_here.set()
            at_last = [await each.until_state("completed") for each in (first, second, late)]
    for frames in at_last:
        assert whole(frames) == whole(at_last[0])
        assert whole(frames)[-1]["content"].endswith("299 ")
    assert states([before[0], *at_last[0]]) == ["idle", "processing", "completed"]
    assert states(seen + at_last[2]) == ["processing", "completed"]


@pytest.mark.requirement("socket-resume")
async def test_reconnect_at_every_cursor_gets_exactly_the_missed_messages(served: Served) -> None:
    async with socket(served, agent_type="worker") as ws:
        everything = messages(await ws.ask("go"))
    for cut, last in enumerate(everything):
        async with socket(served, after=last["cursor"]) as ws:
            await ws.send("ping")
            missed = messages(await ws.until_type("pong"))
            while len(missed) < len(everything) - cut - 1:
                missed += messages([await ws.receive()])
            assert missed == everything[cut + 1 :]


async def test_resume_sends_messages_after_a_cursor_again(served: Served) -> None:
    async with socket(served, agent_type="worker") as ws:
        await ws.receive()
        everything = await ws.ask("go")
        whole_run = whole(everything)
        await ws.send("resume", after=whole_run[0]["cursor"])
        again = await ws.until(lambda frame: frame == whole_run[-1])
        assert whole(again) == whole_run[1:]
        more = await ws.ask("more")
        assert states(again + more) == ["processing", "completed"]


async def test_records_format_sends_the_records_of_the_log(served: Served) -> None:
    async with socket(served, format="records") as ws:
        await ws.receive()
        frames = await ws.ask("go")
        records = [frame for frame in frames if "seq" in frame]
        assert [record["seq"] for record in records] == list(range(1, len(records) + 1))
        assert records[0]["event"]["kind"] == "run_started" and records[-1]["event"]["kind"] == "run_finished"
        await ws.send("get_messages", limit=3)
        listed = await ws.until_type("messages_end")
        assert listed[:-1] == records[-3:]


async def test_queued_query_runs_after_the_live_one_and_commands_are_answered_before(served: Served) -> None:
    async with socket(served, agent_type="patient") as ws:
        await ws.receive()
        await ws.send("query", query="first")
        await ws.until_state("processing")
        await ws.send("query", query="second", if_busy="wait", request_id="r2")
        await ws.send("ping")
        await ws.until_type("pong")
        await ws.send("cancel")
        frames = await ws.until_type("accepted")
        frames += [] if states(frames)[-1:] == ["processing"] else await ws.until_state("processing")
        assert states(frames) == ["idle", "processing"]
        await ws.send("query", query="third", if_busy="cancel")
        again = await ws.until(lambda frame: frame.get("content") == "third")
        assert states(again) == ["idle", "processing"]


async def test_same_request_id_starts_one_run(served: Served) -> None:
    async with socket(served) as ws:
        await ws.receive()
        await ws.send("query", query="once", request_id="r1")
        frames = await ws.until_state("completed")
        await ws.send("query", query="once", request_id="r1")
        await ws.send("ping")
        frames += await ws.until_type("pong")
        accepted = {"type": "accepted", "request_id": "r1", "run_id": frames[-3]["state"]["run_id"]}
        assert [frame for frame in frames if frame.get("type") == "accepted"] == [accepted, accepted]
        assert states(frames) == ["processing", "completed"]


async def test_decisions_reach_the_agent(served: Served) -> None:
    async with socket(served, agent_type="asker") as ws:
        await ws.receive()
        for decision, more in (("approve", {}), ("edit", {"args": {"path": "/tmp/y"}}), ("reject", {"reason": "no"})):
            await ws.send("query", query="delete it")
            asked = await ws.until(lambda f: f.get("metadata", {}).get("message_type") == "approval_request")
            await ws.send("get_state")
            assert states(await ws.until_type("state")) == ["processing"]
            approval_id = asked[-1]["metadata"]["approval_id"]
            await ws.send("approve", approval_id=approval_id, decision=decision, **more)
            frames = await ws.until_state("completed")
            decided = [frame for frame in frames if frame.get("type") == "decided"]
            assert decided == [{"type": "decided", "approval_id": approval_id, "decision": decision}]
            assert whole(frames)[-1]["content"] == f"decision: {decision} by {user_of(served)}"


async def test_session_works_after_a_failed_run(served: Served) -> None:
    async with socket(served, agent_type="crasher") as ws:
        await ws.receive()
        for _ in range(2):
            frames = await ws.ask("go")
            assert states(frames) == ["processing", "error"]
            error = whole(frames)[-1]
            assert error["content"] == "Error: ValueError: the wheel came off"
            assert (error["metadata"]["error"], error["metadata"]["error_type"]) == (True, "ValueError")


@pytest.mark.parametrize(
    ("query", "code"),
    [
        ({"agent_type": "nobody"}, "invalid"),
        ({"max_steps": "0"}, "invalid"),
        ({"max_steps": "101"}, "invalid"),
        ({"max_steps": "many"}, "invalid"),
        ({"after": "x"}, "bad_cursor"),
        ({"after": "9"}, "bad_cursor"),
        ({"format": "typed"}, "bad_request"),
    ],
)
async def test_handshake_with_an_invalid_query_is_closed_with_the_reason(
    served: Served, query: dict[str, str], code: str
) -> None:
    async with socket(served, "s", headers=None, **query) as ws:
        assert (await ws.error())[1] == code
        assert await ws.closed() == (1008, code)
        assert (await served.http.get("/api/v2/sessions/s")).status_code == 404


async def test_session_keeps_its_agent(served: Served) -> None:
    async with socket(served, agent_type="echo", max_steps="7") as ws:
        state = (await ws.receive())["state"]
        assert (state["agent_type"], state["max_steps"]) == ("echo", 7)
    async with socket(served, agent_type="talker") as ws:
        text, code = await ws.error()
        assert code == "agent_mismatch" and "'echo'" in text
    async with socket(served) as ws:
        assert (await ws.receive())["state"] == state
