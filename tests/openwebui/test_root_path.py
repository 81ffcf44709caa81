"""A server below a path: the pipe finds it, what its frames point to, and tells addresses that a browser can use."""

from pathlib import Path
from typing import Any

import pytest

from openwebui.parts.client import join_url
from tests.openwebui.chat import Chat, Seen
from tests.openwebui.test_full_values import LONG, painter, reader
from tests.support import agents
from tests.support.server import serving

OUTSIDE = "https://www.example.org/limelight"


@pytest.mark.parametrize(
    ("url", "path", "found"),
    [
        ("http://h:8000", "/runs/r", "http://h:8000/runs/r"),
        ("http://h:8000", "/limelight/runs/r", "http://h:8000/limelight/runs/r"),
        ("https://h/limelight", "/limelight/runs/r?raw=1", "https://h/limelight/runs/r?raw=1"),
        ("https://h/limelight", "/runs/r", "https://h/limelight/runs/r"),
        ("https://h/lime", "/limelight/runs/r", "https://h/lime/limelight/runs/r"),
        ("", "/limelight/runs/r", "/limelight/runs/r"),
    ],
)
def test_where_a_link_leads(url: str, path: str, found: str) -> None:
    assert join_url(url, path) == found


async def said(agent: Any, data: Path, *, by_the_path: bool) -> Seen:
    settings: dict[str, Any] = {"server__root_path": "/limelight", "auth__api_key": "sesame"}
    async with serving(agent, data=data, **settings) as served:
        url = served.url if by_the_path else served.url.removesuffix("/limelight")
        chat = Chat(url, API_KEY="sesame", PUBLIC_URL=OUTSIDE)
        return await chat.say("go")


@pytest.mark.parametrize("by_the_path", [True, False], ids=["with the path", "past the proxy"])
async def test_what_frames_point_to_is_found(tmp_path: Path, by_the_path: bool) -> None:
    seen = await said(reader, tmp_path / "a", by_the_path=by_the_path)
    assert seen.rows == {"read": LONG}
    seen = await said(painter, tmp_path / "b", by_the_path=by_the_path)
    assert seen.of_type("function_call_output")[0]["files"][0]["url"].startswith("data:image/png")
    seen = await said(agents.big, tmp_path / "c", by_the_path=by_the_path)
    assert f"the whole is at {OUTSIDE}/runs/run_" in seen.rows["dump"]
