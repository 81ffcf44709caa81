"""smolagents: what the model gets is what it gets without us, with what the client adds to it."""

# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

import asyncio
import base64
import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from limelight.events import Status
from tests.sources.live_turn import Stage, theatre
from tests.sources.recorded_requests import Requests
from tests.sources.smolagents.smolagents_scenarios import (
    CODE,
    ONE_TOOL,
    PLAN,
    SUB_AGENT,
    TOOL_ERROR,
    TWO_TURNS,
    calling,
    coding,
    leading,
)


@pytest.mark.parametrize(
    ("make", "script"),
    [
        (calling(), ONE_TOOL),
        (calling(stream_outputs=True), ONE_TOOL),
        (calling(), TOOL_ERROR),
        (calling(planning_interval=1), PLAN),
        (leading(calling, calling), SUB_AGENT),
        (coding(), CODE),
        (leading(coding, calling), CODE),
    ],
)
async def test_the_model_gets_the_same_with_and_without_us(
    make: Callable[[Stage], Any], script: str, tmp_path: Path, requests: Requests, capsys: pytest.CaptureFixture[str]
) -> None:
    async with theatre(make, script, tmp_path) as stage:
        await stage.play("go")
        ours = requests.copy()
        requests.clear()
        await asyncio.to_thread(lambda: list(make(stage.stage).run("go", stream=True)))
    streaming = {"stream", "stream_options"}
    bare = [[{k: v for k, v in r.items() if k not in streaming} for r in asked] for asked in (ours, requests)]
    assert len(bare[0]) > 1
    assert bare[0] == bare[1]


async def test_what_the_client_instructs_adds_to_the_instructions_of_that_turn(
    tmp_path: Path, requests: Requests
) -> None:
    async with theatre(calling(instructions="Speak plainly."), TWO_TURNS, tmp_path) as stage:
        instructed = [{"role": "system", "content": "Rhyme."}, {"role": "user", "content": "hello"}]
        await stage.play(messages=instructed, session_id="a")
        await stage.play("hello", session_id="a")
    first, second = (str(request["messages"][0]["content"]) for request in requests)
    assert "Speak plainly." in first and "Rhyme." in first
    assert "Speak plainly." in second and "Rhyme." not in second


def picture() -> str:
    buffer = io.BytesIO()
    Image.new("RGB", (2, 2), "blue").save(buffer, format="PNG")
    return "data:image/png;base64," + base64.b64encode(buffer.getvalue()).decode()


async def test_a_picture_reaches_the_model_and_is_no_artifact(tmp_path: Path, requests: Requests) -> None:
    content = [
        {"type": "text", "text": "hello"},
        {"type": "image_url", "image_url": {"url": picture()}},
        {"type": "file", "file": {"filename": "notes.txt", "file_data": "data:text/plain,abc"}},
    ]
    async with theatre(calling(), TWO_TURNS, tmp_path) as stage:
        run = await stage.play(messages=[{"role": "user", "content": content}])
    assert "image_url" in str(requests[0]["messages"])
    assert "artifact_made" not in run.kinds and "ArtifactMade" not in run.kinds
    assert [s.text for s in run.all(Status)] == ["Left out, as this agent takes pictures only: notes.txt"]
