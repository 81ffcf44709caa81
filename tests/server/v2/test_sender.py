"""Socket framing: many Records in one message, without loss or repetition."""

import json
from collections.abc import AsyncIterator
from pathlib import Path
from random import Random
from typing import Any

import msgspec
import pytest

from limelight.deltas import join
from limelight.dialects.frame_encoder import FrameEncoder
from limelight.dialects.records import JoinedRecordsDialect, RecordsDialect
from limelight.events import AnyEvent, Record, Status, TextDelta, TextFinished
from limelight.messages import Message
from limelight.server.v2.sender import MESSAGE_BYTES, socket_framing
from limelight.sources.base import Context
from tests.server.v2.socket_client import Json, Socket, socket, states
from tests.support.agents import talker
from tests.support.server import Served, serving
from tests.support.strategies import as_records, write_run

PACKING = socket_framing("s", packed=True)
PACKED: dict[str, Any] = {"format": "records", "packed": "1"}


def unpacked(frames: list[Json]) -> list[Record]:
    """The Records of all frames. Checks that the cursor of each frame is the seq of its last Record."""
    found: list[Record] = []
    for frame in frames:
        if "records" in frame:
            found += msgspec.convert(frame["records"], list[Record])
            assert frame["cursor"] == str(found[-1].seq)
    return found


def whole(records: list[Record]) -> list[Record]:
    return [joined.record for joined in join(records)]


async def plain(served: Served, session_id: str = "s", after: int = 0) -> list[Record]:
    """The log in the format without packing."""
    async with socket(served, session_id, format="records", after=str(after)) as ws:
        end = (await ws.receive())["state"]["cursor"]
        frames = await ws.until(lambda frame: frame.get("cursor") == end)
    return [msgspec.convert({key: frame[key] for key in ("seq", "run_id", "at", "event")}, Record) for frame in frames]


async def until_end(ws: Socket) -> list[Json]:
    end = (await ws.receive())["state"]["cursor"]
    return await ws.until(lambda frame: frame.get("cursor") == end)


def test_packing_splits_by_size_and_sends_gaps_alone() -> None:
    records = as_records([Status(text="x" * 10_000) for _ in range(40)], first_seq=12)
    encoder = FrameEncoder(RecordsDialect)
    sent = [*encoder.encode(records[0]), encoder.gap(13, 14), *encoder.catch_up(records[1:])]
    frames = PACKING(sent)
    assert max(map(len, frames)) < MESSAGE_BYTES + 200
    assert 4 < len(frames) < 8
    read = [json.loads(frame) for frame in frames]
    assert unpacked(read) == records
    assert read[1] == {"session_id": "s", "cursor": "14", "gap": {"from": 13, "to": 14}}


def test_packing_sends_a_large_record_alone() -> None:
    records = as_records([Status(text="a"), Status(text="x" * MESSAGE_BYTES), Status(text="b")])
    frames = PACKING(FrameEncoder(RecordsDialect).catch_up(records))
    assert [len(json.loads(frame)["records"]) for frame in frames] == [1, 1, 1]


def test_packing_of_no_frames_sends_nothing() -> None:
    assert PACKING([]) == []


@pytest.mark.parametrize("seed", range(5))
def test_joined_record_has_the_seq_of_its_last_part(seed: int) -> None:
    records = as_records(write_run(Random(seed), 200))
    frames = PACKING(FrameEncoder(JoinedRecordsDialect).catch_up(records))
    assert unpacked([json.loads(frame) for frame in frames]) == whole(records)


async def test_packed_replay_has_deltas_joined(served: Served) -> None:
    for text in ("one", "two", "three"):
        await served.http.post("/chat", json={"messages": [{"role": "user", "content": text}], "session_id": "s"})
    log = await plain(served)
    async with socket(served, after="0", **PACKED) as ws:
        frames = await until_end(ws)
    assert [record.seq for record in log] == list(range(1, len(log) + 1))
    assert unpacked(frames) == whole(log)
    assert len(frames) == 1, "ended runs come in one message"


@pytest.mark.requirement("socket-packed")
async def test_packed_resume_at_every_record_is_exact(served: Served) -> None:
    for text in ("one", "two"):
        await served.http.post("/chat", json={"messages": [{"role": "user", "content": text}], "session_id": "s"})
    log = await plain(served)
    for cut in range(len(log)):
        async with socket(served, after=str(cut), **PACKED) as ws:
            assert unpacked(await until_end(ws)) == whole(log[cut:])


async def test_packed_live_frames_equal_the_log_with_states_around_runs(served: Served) -> None:
    frames: list[Json] = []
    async with socket(served, after="0", **PACKED) as ws:
        frames.append(await ws.receive())
        for text in ("one", "two"):
            frames += await ws.ask(text)
        await ws.send("get_messages", limit=1000)
        read_back = await ws.until_type("messages_end")
    assert states(frames) == ["idle", "processing", "completed", "processing", "completed"]
    log = await plain(served)
    assert whole(unpacked(frames)) == whole(log)
    assert unpacked(read_back) == log
    assert read_back[-1]["count"] == len(log)


async def test_packed_replay_continues_with_the_live_run_and_its_states(served: Served) -> None:
    """Ended runs come in one message; the live run after them has its own states."""
    async with socket(served, agent_type="patient", **PACKED) as first:
        for text in ("one", "two", "three"):
            await first.send("query", query=text)
            await first.until(lambda frame: "tool_started" in str(frame))
            if text != "three":
                await first.send("cancel")
                await first.until_state("idle")
        async with socket(served, after="0", **PACKED) as late:
            frames = [await late.receive()]
            await first.send("cancel")
            frames += await late.until_state("idle")
            await late.send("query", query="four")
            frames += await late.until(lambda frame: "tool_started" in str(frame))
            await late.send("cancel")
            frames += await late.until_state("idle")
    assert states(frames) == ["processing", "idle", "processing", "idle"]
    assert whole(unpacked(frames)) == whole(await plain(served))


@pytest.mark.parametrize("packed_", ["0", "1"])
async def test_states_with_records_have_no_message_count(served: Served, packed_: str) -> None:
    async with socket(served, format="records", packed=packed_) as ws:
        assert "message_count" not in (await ws.receive())["state"]
        sent = [frame["state"] for frame in await ws.ask("hello") if frame.get("type") == "state"]
        assert len(sent) == 2
        assert not any("message_count" in state for state in sent)
        await ws.send("get_state")
        assert (await ws.until_type("state"))[-1]["state"]["message_count"] > 1


@pytest.mark.parametrize(
    ("query", "detail"),
    [
        ({"packed": "1"}, "packed=1 needs format=records"),
        ({"format": "v2", "packed": "1"}, "packed=1 needs format=records"),
        ({"format": "records", "packed": "yes"}, "packed is 1 or 0"),
    ],
)
async def test_packed_without_records_is_refused(served: Served, query: dict[str, Any], detail: str) -> None:
    async with socket(served, **query) as ws:
        message, code = await ws.error()
    assert message.startswith(detail)
    assert code == "bad_request"


async def test_records_without_packed_come_one_per_frame(served: Served) -> None:
    async with socket(served, format="records", packed="0") as ws:
        await ws.receive()
        frames = await ws.ask("one")
    assert not [frame for frame in frames if "records" in frame]


async def chatty(messages: list[Message], ctx: Context) -> AsyncIterator[AnyEvent]:
    for number in range(2000):
        yield TextDelta(message_id=f"m{number}", text="One of ")
        yield TextDelta(message_id=f"m{number}", text="many messages.")
        yield TextFinished(message_id=f"m{number}")


@pytest.mark.requirement("socket-packed")
async def test_long_session_is_packed_into_few_frames(tmp_path: Path) -> None:
    async with serving(talker, chatty, data=tmp_path) as served:
        body = {"messages": [{"role": "user", "content": "go"}], "session_id": "s", "agent": "chatty"}
        assert (await served.http.post("/chat", json=body)).status_code == 200
        async with socket(served, after="0", **PACKED) as ws:
            frames = await until_end(ws)
        assert whole(unpacked(frames)) == whole(await plain(served))
    assert len(unpacked(frames)) < 4100, "all but a few at the edges of batches are joined"
    assert len(frames) < 20
