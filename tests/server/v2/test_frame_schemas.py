"""Frames that the server sends against the schemas of the AsyncAPI document, and the examples of its commands."""

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from limelight.dialects.base import Frame
from limelight.dialects.v2.message_schema import PANES
from limelight.events import EVENT_TYPES, kind_of
from limelight.ids import now_ms
from limelight.models import Cursor
from limelight.server.v2.asyncapi import COMMANDS, SERVER_MESSAGES, asyncapi, name_of
from limelight.server.v2.sender import socket_framing
from limelight.sources.base import Context
from tests.dialects.transcripts import SCRIPTS, parse
from tests.server.v2.all_events_agent import everything
from tests.server.v2.socket_client import Json, Socket, socket
from tests.support import agents
from tests.support.json_schemas import Checker, strict
from tests.support.server import offer, serving
from tests.support.wait import eventually

GOLDEN = Path(__file__).parents[2] / "dialects" / "golden"
DOCUMENT: dict[str, Any] = json.loads(asyncapi())
CHECKERS = {
    name: Checker(strict(DOCUMENT["components"]), message["payload"]["$ref"])
    for name, message in DOCUMENT["components"]["messages"].items()
}
FORMATS = {"v2": {"message", "gap"}, "records": {"record", "record_gap"}, "packed": {"records", "record_gap"}}
"""The log frames of each format; replies are the same in all."""
ASKED: dict[str, dict[str, Any]] = {
    "v2": {"format": "v2"},
    "records": {"format": "records"},
    "packed": {"format": "records", "packed": "1"},
}
"""The query of each format."""
REPLIES = {name_of(shape) for shape in SERVER_MESSAGES} - {name for names in FORMATS.values() for name in names}


def name_in(frame: Json) -> str:
    """The name of a frame in the document, as a client determines it."""
    if "type" in frame:
        return frame["type"]
    if "message_id" in frame:
        return "message"
    if "records" in frame:
        return "records"
    return "record_gap" if "gap" in frame else "record"


def check(frames: list[Json]) -> set[str]:
    """Check each frame against its schema; returns their names."""
    for frame in frames:
        assert CHECKERS[name_in(frame)].faults(frame) == [], frame
    return {name_in(frame) for frame in frames}


def kinds_in(frame: Json) -> dict[str, Json]:
    """The messages or events of a frame, by kind."""
    if "metadata" in frame:
        return {frame["metadata"]["message_type"]: frame["metadata"]}
    records = frame.get("records", [frame] if "event" in frame else [])
    return {record["event"]["kind"]: record["event"] for record in records}


async def turn(ws: Socket, query: str, **answer: Any) -> list[Json]:
    """Ask, and decide the approval. Returns all frames up to the state after the run."""
    await ws.send("query", query=query)
    wanted = {"approval_request", "approval_requested"}
    frames = await ws.until(lambda frame: bool(wanted & kinds_in(frame).keys()))
    asked = kinds_in(frames[-1])
    await ws.send("approve", approval_id=asked[(wanted & asked.keys()).pop()]["approval_id"], **answer)
    return frames + await ws.until_state("completed", "error", "idle")


async def send_all_commands(ws: Socket) -> list[Json]:
    """Send every command, and some that are refused."""
    frames = [await ws.receive()]
    frames += await turn(ws, "Why?", decision="edit", args={"path": "b.md"})
    frames += await turn(ws, "fail")
    await ws.send("query", query="Go.", request_id="q")
    frames += await ws.until_type("accepted")
    await ws.send("query", query="And this?")
    await ws.send("nonsense")
    await ws.send("get_messages", limit=10_000)
    frames += await ws.until_type("messages_end")
    await ws.send("cancel", reason="enough")
    frames += await ws.until_state("idle")
    await ws.send("get_state")
    await ws.send("ping")
    return frames + await ws.until_type("pong")


@pytest.mark.parametrize("script", SCRIPTS)
@pytest.mark.parametrize("format_", FORMATS)
def test_golden_transcripts_fit_the_schemas(format_: str, script: str) -> None:
    sent = (GOLDEN / f"{script}.{ASKED[format_]['format']}.sse").read_bytes()
    frames = [Frame(Cursor.parse(frame.id), frame.data) for frame in parse(sent)]
    framing = socket_framing("s", packed=format_ == "packed")
    assert check([json.loads(text) for text in framing(frames)]) < FORMATS[format_]


@pytest.mark.parametrize("format_", FORMATS)
async def test_frames_of_a_conversation_fit_the_schemas(tmp_path: Path, format_: str) -> None:
    async with serving(everything, data=tmp_path) as served, socket(served, **ASKED[format_]) as ws:
        frames = await send_all_commands(ws)
    seen = check(frames)
    assert seen - FORMATS[format_] == REPLIES
    kinds = {kind for frame in frames for kind in kinds_in(frame)}
    assert kinds == (set(PANES) if format_ == "v2" else {kind_of(event) for event in EVENT_TYPES})


async def test_frames_without_streaming_fit_the_schemas(tmp_path: Path) -> None:
    quiet = offer(everything, enable_streaming=False)
    async with serving(agents=[quiet], data=tmp_path) as served, socket(served) as ws:
        frames = await send_all_commands(ws)
    check(frames)
    assert not [frame for frame in frames if frame.get("metadata", {}).get("streaming")]


@pytest.mark.parametrize("format_", FORMATS)
async def test_gap_fits_the_schema(tmp_path: Path, format_: str) -> None:
    async with serving(agents.talker, data=tmp_path) as served:
        async with socket(served) as ws:
            await ws.receive()
            await ws.ask("one")
            ended = now_ms()
            await eventually(lambda: now_ms() > ended + 1)
            await ws.ask("two")
        assert (await served.runtime.store.sweep(ended + 1)).runs == 1
        async with socket(served, **ASKED[format_], after="1") as late:
            frames = await late.until(lambda frame: name_in(frame) in FORMATS[format_])
    assert check(frames) == {"state", "gap" if format_ == "v2" else "record_gap"}


# Commands


async def asking(messages: object, ctx: Context) -> AsyncIterator[str]:
    """Requests an approval that can also be answered."""
    yield (await ctx.approve("delete", {"path": "/tmp/x"}, question="Delete it?", answer_schema={})).decision


async def test_every_example_of_the_document_is_answered(tmp_path: Path) -> None:
    """Only ids and cursors are filled in. No frame is an error."""
    examples = {command.name: list(command.examples) for command in COMMANDS}
    query, patient_query = examples.pop("query")
    frames: list[Json] = []
    async with serving(asking, data=tmp_path) as served, socket(served) as ws:
        for approve in examples.pop("approve"):
            frames += await send(ws, query, "approval_request")
            placed = {**approve, "approval_id": frames[-1]["metadata"]["approval_id"]}
            frames += await send(ws, placed, "decided")
            frames += await ws.until_state("completed")
        for cancel in examples.pop("cancel"):
            frames += await send(ws, query, "approval_request")
            await ws.connection.send(json.dumps(patient_query))
            frames += await send(ws, cancel, "accepted")
        cursor = next(frame["cursor"] for frame in frames if "cursor" in frame)
        for resume in examples.pop("resume"):
            frames += await send(ws, {**resume, "after": cursor}, "approval_request")
        for name, answer in (("ping", "pong"), ("get_messages", "messages_end"), ("get_state", "state")):
            for example in examples.pop(name):
                placed = {**example, "before": cursor} if "before" in example else example
                frames += await send(ws, placed, answer)
    assert examples == {}
    assert check(frames) == {"message"} | REPLIES - {"error"}


async def send(ws: Socket, example: Json, answer: str) -> list[Json]:
    """Send an example and return all frames up to the answer."""
    await ws.connection.send(json.dumps(example))
    return await ws.until(lambda frame: answer in (name_in(frame), *kinds_in(frame)))
