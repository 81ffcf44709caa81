"""What the server really sends, frame by frame, against the AsyncAPI document; and what that lets clients say."""

import json
from pathlib import Path
from typing import Any

import pytest

from limelight.dialects.base import Frame
from limelight.dialects.v2.routing import PANES
from limelight.events import EVENT_TYPES, kind_of
from limelight.ids import now_ms
from limelight.server.v2.asyncapi import COMMANDS, SERVER_MESSAGES, asyncapi, name_of
from limelight.server.v2.sender import socket_framing
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
"""What is shown of the log in each format; replies are the same in all."""
ASKED: dict[str, dict[str, Any]] = {
    "v2": {"format": "v2"},
    "records": {"format": "records"},
    "packed": {"format": "records", "packed": "1"},
}
"""How a client asks for it."""
REPLIES = {name_of(shape) for shape in SERVER_MESSAGES} - {name for names in FORMATS.values() for name in names}


def name_in(frame: Json) -> str:
    """Which message of the document a frame is, as a client tells it."""
    if "type" in frame:
        return frame["type"]
    if "message_id" in frame:
        return "message"
    if "records" in frame:
        return "records"
    return "record_gap" if "gap" in frame else "record"


def check(frames: list[Json]) -> set[str]:
    """Each frame fits its schema; returns which kinds there were."""
    for frame in frames:
        assert CHECKERS[name_in(frame)].faults(frame) == [], frame
    return {name_in(frame) for frame in frames}


def kinds_in(frame: Json) -> dict[str, Json]:
    """What a frame tells of, each with its fields."""
    if "metadata" in frame:
        return {frame["metadata"]["message_type"]: frame["metadata"]}
    records = frame.get("records", [frame] if "event" in frame else [])
    return {record["event"]["kind"]: record["event"] for record in records}


async def turn(watching: Socket, query: str, **answer: Any) -> list[Json]:
    """Ask, and decide when a decision is wanted. All frames up to the state behind the run."""
    await watching.say("query", query=query)
    wanted = {"approval_request", "approval_requested"}
    frames = await watching.until(lambda frame: bool(wanted & kinds_in(frame).keys()))
    asked = kinds_in(frames[-1])
    await watching.say("approve", approval_id=asked[(wanted & asked.keys()).pop()]["approval_id"], **answer)
    return frames + await watching.until_state("completed", "error", "idle")


async def talk(watching: Socket) -> list[Json]:
    """Everything that can be said, and much that cannot."""
    frames = [await watching.hear()]
    frames += await turn(watching, "Why?", decision="edit", args={"path": "b.md"})
    frames += await turn(watching, "fail")
    await watching.say("query", query="Go.", request_id="q")
    frames += await watching.until_type("accepted")
    await watching.say("query", query="And this?")
    await watching.say("nonsense")
    await watching.say("get_messages", limit=10_000)
    frames += await watching.until_type("messages_end")
    await watching.say("cancel", reason="enough")
    frames += await watching.until_state("idle")
    await watching.say("get_state")
    await watching.say("ping")
    return frames + await watching.until_type("pong")


@pytest.mark.parametrize("script", SCRIPTS)
@pytest.mark.parametrize("format_", FORMATS)
def test_the_golden_transcripts_fit_the_document(format_: str, script: str) -> None:
    sent = (GOLDEN / f"{script}.{ASKED[format_]['format']}.sse").read_bytes()
    frames = [Frame(frame.id, frame.data) for frame in parse(sent)]
    framing = socket_framing("s", packed=format_ == "packed")
    assert check([json.loads(text) for text in framing(frames)]) < FORMATS[format_]


@pytest.mark.parametrize("format_", FORMATS)
async def test_every_frame_of_a_conversation_fits_the_document(tmp_path: Path, format_: str) -> None:
    async with serving(everything, data=tmp_path) as served, socket(served, **ASKED[format_]) as watching:
        frames = await talk(watching)
    seen = check(frames)
    assert seen - FORMATS[format_] == REPLIES
    kinds = {kind for frame in frames for kind in kinds_in(frame)}
    assert kinds == (set(PANES) if format_ == "v2" else {kind_of(event) for event in EVENT_TYPES})


async def test_an_agent_that_does_not_stream_sends_what_the_document_says(tmp_path: Path) -> None:
    quiet = offer(everything, enable_streaming=False)
    async with serving(agents=[quiet], data=tmp_path) as served, socket(served) as watching:
        frames = await talk(watching)
    check(frames)
    assert not [frame for frame in frames if frame.get("metadata", {}).get("streaming")]


@pytest.mark.parametrize("format_", FORMATS)
async def test_a_gap_fits_the_document(tmp_path: Path, format_: str) -> None:
    async with serving(agents.talker, data=tmp_path) as served:
        async with socket(served) as watching:
            await watching.hear()
            await watching.ask("one")
            ended = now_ms()
            await eventually(lambda: now_ms() > ended + 1)
            await watching.ask("two")
        assert (await served.runtime.store.sweep(ended + 1)).runs == 1
        async with socket(served, **ASKED[format_], after="1") as late:
            frames = await late.until(lambda frame: name_in(frame) in FORMATS[format_])
    assert check(frames) == {"state", "gap" if format_ == "v2" else "record_gap"}


# What clients may say


async def test_every_example_of_the_document_does_what_it_says(tmp_path: Path) -> None:
    """Only ids and cursors are put in their place. No frame is an error."""
    examples = {command.name: list(command.examples) for command in COMMANDS}
    query, patient_query = examples.pop("query")
    heard: list[Json] = []
    async with serving(agents.asker, data=tmp_path) as served, socket(served) as watching:
        for approve in examples.pop("approve"):
            heard += await send(watching, query, "approval_request")
            placed = {**approve, "approval_id": heard[-1]["metadata"]["approval_id"]}
            heard += await send(watching, placed, "decided")
            heard += await watching.until_state("completed")
        for cancel in examples.pop("cancel"):
            heard += await send(watching, query, "approval_request")
            await watching.connection.send(json.dumps(patient_query))
            heard += await send(watching, cancel, "accepted")
        cursor = next(frame["cursor"] for frame in heard if "cursor" in frame)
        for resume in examples.pop("resume"):
            heard += await send(watching, {**resume, "after": cursor}, "approval_request")
        for name, answer in (("ping", "pong"), ("get_messages", "messages_end"), ("get_state", "state")):
            for example in examples.pop(name):
                placed = {**example, "before": cursor} if "before" in example else example
                heard += await send(watching, placed, answer)
    assert examples == {}
    assert check(heard) == {"message"} | REPLIES - {"error"}


async def send(watching: Socket, example: Json, answer: str) -> list[Json]:
    """All that is heard up to the answer."""
    await watching.connection.send(json.dumps(example))
    return await watching.until(lambda frame: answer in (name_in(frame), *kinds_in(frame)))
