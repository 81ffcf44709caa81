"""smolagents: requests to the model are the same as without Limelight, with the client's additions."""

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
from tests.sources.live_turn import ModelEndpoint, run_agent, serve_agent
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


@pytest.mark.requirement("same-requests")
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
async def test_model_gets_the_same_requests_with_and_without_limelight(
    make: Callable[[ModelEndpoint], Any],
    script: str,
    tmp_path: Path,
    requests: Requests,
    capsys: pytest.CaptureFixture[str],
) -> None:
    async with serve_agent(make, script, tmp_path) as server:
        await server.run("go")
        ours = requests.copy()
        requests.clear()
        await asyncio.to_thread(lambda: list(make(server.endpoint).run("go", stream=True)))
    streaming = {"stream", "stream_options"}
    bare = [[{k: v for k, v in r.items() if k not in streaming} for r in asked] for asked in (ours, requests)]
    assert len(bare[0]) > 1
    assert bare[0] == bare[1]


async def test_system_messages_add_to_the_instructions_of_their_turn(tmp_path: Path, requests: Requests) -> None:
    async with serve_agent(calling(instructions="Speak plainly."), TWO_TURNS, tmp_path) as server:
        instructed = [{"role": "system", "content": "Rhyme."}, {"role": "user", "content": "hello"}]
        await server.run(messages=instructed, session_id="a")
        await server.run("hello", session_id="a")
    first, second = (str(request["messages"][0]["content"]) for request in requests)
    assert "Speak plainly." in first and "Rhyme." in first
    assert "Speak plainly." in second and "Rhyme." not in second


def picture() -> str:
    buffer = io.BytesIO()
    Image.new("RGB", (2, 2), "blue").save(buffer, format="PNG")
    return "data:image/png;base64," + base64.b64encode(buffer.getvalue()).decode()


async def test_sent_image_reaches_the_model_and_is_not_an_artifact_of_the_agent(
    tmp_path: Path, requests: Requests
) -> None:
    content = [
        {"type": "text", "text": "hello"},
        {"type": "image_url", "image_url": {"url": picture()}},
        {"type": "file", "file": {"filename": "notes.txt", "file_data": "data:text/plain,abc"}},
    ]
    run = await run_agent(calling(), TWO_TURNS, tmp_path, messages=[{"role": "user", "content": content}])
    assert "image_url" in str(requests[0]["messages"])
    assert "artifact_made" not in run.kinds and "ArtifactMade" not in run.kinds
    assert [s.text for s in run.all(Status)] == [
        "Left out, as this agent takes only pictures that are not too large: notes.txt"
    ]
