"""The socket of a session: what a client says, and what it hears."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from websockets.exceptions import ConnectionClosed

from limelight.messages import Message
from limelight.server.v2.socket import MESSAGE_BURST
from limelight.sources.base import Context
from tests.server.v2.socket_client import messages, socket, states, types, whole
from tests.support import agents
from tests.support.server import serving


async def test_a_conversation(tmp_path: Path) -> None:
    async with serving(agents.worker, data=tmp_path) as served, socket(served, agent_type="worker") as watching:
        assert states([await watching.hear()]) == ["idle"]
        frames = await watching.ask("hello")
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
        second = await watching.ask("again")
        assert second[-1]["state"]["message_count"] == count + len(whole(second))
        assert not {m["message_id"] for m in messages(second)} & {m["message_id"] for m in messages(frames)}


async def test_everything_is_answered_while_a_run_goes_on(tmp_path: Path) -> None:
    async with serving(agents.patient, data=tmp_path) as served, socket(served) as watching:
        await watching.say("query", query="go")
        await watching.until(lambda f: "metadata" in f and f["metadata"]["message_type"] == "tool_call")
        await watching.say("ping")
        await watching.say("get_state")
        await watching.say("get_messages", limit=2)
        await watching.say("query", query="and this?")
        frames = await watching.until_type("error")
        assert "pong" in types(frames)
        assert states(frames) == ["processing"]
        end = next(frame for frame in frames if frame.get("type") == "messages_end")
        assert (end["count"], end["more"]) == (2, True)
        assert frames[-1]["message"] == "Session is already processing a query"
        assert frames[-1]["error_code"] == "session_busy"
        await watching.say("cancel", reason="enough")
        ending = await watching.until_state("idle")
        assert ending[-2]["content"] == "Stopped"
        await watching.say("cancel")
        assert await watching.error() == ("Session is not processing a query", "not_processing")


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
        ('{"type": "resume", "after": 99}', "the session's log ends at 0: after is from another one", "bad_cursor"),
        ('{"type": "approve", "approval_id": "a"}', "Session is not processing a query", "not_processing"),
        ('{"type": "approve", "approval_id": "a", "decision": "edit"}', "to edit, send the new args", "invalid"),
        ('{"type": "cancel", "request_id": "r"}', "Session is not processing that query", "not_processing"),
        pytest.param("x" * 10_000_000, "Message is larger than 1048576 bytes", "body_too_large", id="10 MB"),
    ],
)
async def test_what_is_wrong_is_said_and_the_socket_stays_open(
    tmp_path: Path, sent: str | bytes, text: str, code: str
) -> None:
    async with serving(agents.talker, data=tmp_path) as served, socket(served) as watching:
        await watching.connection.send(sent)
        assert await watching.error() == (text, code)
        await watching.say("ping")
        assert (await watching.hear())["type"] == "pong"


async def test_each_ping_is_answered_once(tmp_path: Path) -> None:
    async with serving(agents.talker, data=tmp_path) as served, socket(served) as watching:
        await watching.hear()
        for _ in range(MESSAGE_BURST):
            await watching.say("ping")
        assert [await watching.hear() for _ in range(MESSAGE_BURST)] == [{"type": "pong"}] * MESSAGE_BURST


async def test_several_sockets_watch_one_session_and_one_that_leaves_stops_nothing(tmp_path: Path) -> None:
    everybody_is_here = asyncio.Event()

    async def counter(messages: list[Message], ctx: Context) -> AsyncIterator[str]:
        for number in range(300):
            yield f"{number} "
            if number == 100:
                await everybody_is_here.wait()

    async with serving(counter, data=tmp_path) as served, socket(served) as first, socket(served) as second:
        async with socket(served) as third:
            await third.say("query", query="count")
            await third.until(lambda frame: "metadata" in frame and frame["metadata"].get("is_delta", False))
        async with socket(served) as late:
            seen = [await late.hear()]
            everybody_is_here.set()
            at_last = [await each.until_state("completed") for each in (first, second, late)]
    for frames in at_last:
        assert whole(frames) == whole(at_last[0])
        assert whole(frames)[-1]["content"].endswith("299 ")
    assert states(at_last[0]) == ["idle", "processing", "completed"]
    assert states(seen + at_last[2]) == ["processing", "completed"]


async def test_reconnecting_gets_exactly_what_was_missed(tmp_path: Path) -> None:
    async with serving(agents.worker, data=tmp_path) as served:
        async with socket(served) as watching:
            everything = messages(await watching.ask("go"))
        for cut, last in enumerate(everything):
            async with socket(served, after=last["cursor"]) as watching:
                await watching.say("ping")
                missed = messages(await watching.until_type("pong"))
                while len(missed) < len(everything) - cut - 1:
                    missed += messages([await watching.hear()])
                assert missed == everything[cut + 1 :]


async def test_resume_goes_back_to_a_cursor(tmp_path: Path) -> None:
    async with serving(agents.worker, data=tmp_path) as served, socket(served) as watching:
        await watching.hear()
        everything = await watching.ask("go")
        whole_run = whole(everything)
        await watching.say("resume", after=whole_run[0]["cursor"])
        again = await watching.until(lambda frame: frame == whole_run[-1])
        assert whole(again) == whole_run[1:]
        more = await watching.ask("more")
        assert states(again + more) == ["processing", "completed"]


async def test_records_on_the_socket(tmp_path: Path) -> None:
    async with serving(agents.talker, data=tmp_path) as served, socket(served, format="records") as watching:
        await watching.hear()
        frames = await watching.ask("go")
        records = [frame for frame in frames if "seq" in frame]
        assert [record["seq"] for record in records] == list(range(1, len(records) + 1))
        assert records[0]["event"]["kind"] == "run_started" and records[-1]["event"]["kind"] == "run_finished"
        await watching.say("get_messages", limit=3)
        listed = await watching.until_type("messages_end")
        assert listed[:-1] == records[-3:]


async def test_a_query_can_wait_for_its_turn_and_others_are_heard_meanwhile(tmp_path: Path) -> None:
    async with serving(agents.patient, data=tmp_path) as served, socket(served) as watching:
        await watching.hear()
        await watching.say("query", query="first")
        await watching.until_state("processing")
        await watching.say("query", query="second", if_busy="wait", request_id="r2")
        await watching.say("ping")
        await watching.until_type("pong")
        await watching.say("cancel")
        frames = await watching.until_type("accepted")
        frames += [] if states(frames)[-1:] == ["processing"] else await watching.until_state("processing")
        assert states(frames) == ["idle", "processing"]
        await watching.say("query", query="third", if_busy="cancel")
        again = await watching.until(lambda frame: frame.get("content") == "third")
        assert states(again) == ["idle", "processing"]


async def test_the_same_request_is_one_run(tmp_path: Path) -> None:
    async with serving(agents.talker, data=tmp_path) as served, socket(served) as watching:
        await watching.hear()
        await watching.say("query", query="once", request_id="r1")
        frames = await watching.until_state("completed")
        await watching.say("query", query="once", request_id="r1")
        await watching.say("ping")
        frames += await watching.until_type("pong")
        accepted = {"type": "accepted", "request_id": "r1", "run_id": frames[-3]["state"]["run_id"]}
        assert [frame for frame in frames if frame.get("type") == "accepted"] == [accepted, accepted]
        assert states(frames) == ["processing", "completed"]


async def test_deciding(tmp_path: Path) -> None:
    async with serving(agents.asker, data=tmp_path) as served, socket(served) as watching:
        await watching.hear()
        for decision, more, answer in (
            ("approve", {}, "decision: approve by local"),
            ("edit", {"args": {"path": "/tmp/y"}}, "decision: edit by local"),
            ("reject", {"reason": "no"}, "decision: reject by local"),
        ):
            await watching.say("query", query="delete it")
            asked = await watching.until(lambda f: f.get("metadata", {}).get("message_type") == "approval_request")
            await watching.say("get_state")
            assert states(await watching.until_type("state")) == ["processing"]
            approval_id = asked[-1]["metadata"]["approval_id"]
            await watching.say("approve", approval_id=approval_id, decision=decision, **more)
            frames = await watching.until_state("completed")
            decided = [frame for frame in frames if frame.get("type") == "decided"]
            assert decided == [{"type": "decided", "approval_id": approval_id, "decision": decision}]
            assert whole(frames)[-1]["content"] == answer


async def test_a_failed_run_and_the_next(tmp_path: Path) -> None:
    async with serving(agents.crasher, data=tmp_path) as served, socket(served) as watching:
        await watching.hear()
        for _ in range(2):
            frames = await watching.ask("go")
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
async def test_what_cannot_be_opened_is_refused_with_the_reason(
    tmp_path: Path, query: dict[str, str], code: str
) -> None:
    async with serving(agents.talker, data=tmp_path) as served, socket(served, "s", headers=None, **query) as watching:
        assert (await watching.error())[1] == code
        with pytest.raises(ConnectionClosed) as closed:
            await watching.hear()
        assert closed.value.rcvd is not None and (closed.value.rcvd.code, closed.value.rcvd.reason) == (1008, code)
        assert (await served.http.get("/api/v2/sessions/s")).status_code == 404


async def test_a_session_keeps_its_agent(tmp_path: Path) -> None:
    async with serving(agents.talker, agents.echo, data=tmp_path) as served:
        async with socket(served, agent_type="echo", max_steps="7") as watching:
            state = (await watching.hear())["state"]
            assert (state["agent_type"], state["max_steps"]) == ("echo", 7)
        async with socket(served, agent_type="talker") as watching:
            text, code = await watching.error()
            assert code == "agent_mismatch" and "'echo'" in text
        async with socket(served) as watching:
            assert (await watching.hear())["state"] == state
