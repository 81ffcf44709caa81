"""What the server does not keep any more: the chat says that something is missing."""

import json

import pytest

from tests.openwebui.chat import Chat
from tests.openwebui.frame_server import Stage
from tests.openwebui.function_rules import Json

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest.mark.parametrize("display", ["native", "collapse", "details", "plain"])
async def test_a_gap_is_a_line_of_the_status(stage: Stage, display: str) -> None:
    frames: list[Json] = [
        {"type": "gap", "data": {"from": 3, "to": 1202}},
        {"type": "token", "data": {"content": "The end.", "agent_depth": 0}},
        {"type": "done", "data": {}},
    ]
    stage.frames = [f"id: {place}\ndata: {json.dumps(frame)}\n\n".encode() for place, frame in enumerate(frames)]
    seen = await Chat(stage.url, DISPLAY=display).say("go")
    assert "1,200 events are no longer kept" in seen.statuses
    assert (seen.text, seen.end) == ("The end.", ("Complete", True))
