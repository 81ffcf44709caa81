"""Files that take time to read or encode: not on the event loop, and a failure does not end the run."""

# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# The frameworks' own types are partly unknown.

import threading
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from agno.media import Image as AgnoImage
from agno.tools.function import ToolResult
from langchain.agents import create_agent
from langchain_core.tools import tool
from PIL import Image

from limelight.events import ArtifactMade, FinalAnswer, Status
from limelight.sources.base import FileMade
from tests.sources.agno import agno_scenarios
from tests.sources.langgraph import langgraph_scenarios
from tests.sources.live_turn import ModelEndpoint, run_agent, serve_agent

pytestmark = pytest.mark.usefixtures("agno_models")


async def test_file_is_read_in_a_thread(tmp_path: Path) -> None:
    readers: list[int] = []

    def read() -> bytes:
        readers.append(threading.get_ident())
        return b"a report"

    async def agent(*_: Any) -> AsyncIterator[Any]:
        yield FileMade(name="report.txt", data=read, media_type="text/plain")
        yield "Done."

    async with serve_agent(lambda _: agent, "", tmp_path) as server:
        run = await server.run()
        made = run.one(ArtifactMade)
        kept = await server.served.http.get(f"/artifacts/{made.artifact_id}")
    assert (made.size, kept.content) == (8, b"a report")
    assert len(readers) == 1 and threading.get_ident() not in readers


async def test_unreadable_file_is_reported_and_the_run_continues(tmp_path: Path) -> None:
    async def agent(*_: Any) -> AsyncIterator[Any]:
        yield FileMade(name="report.txt", data=(tmp_path / "nowhere").read_bytes)
        yield "Done."

    run = await run_agent(lambda _: agent, "", tmp_path)
    assert "report.txt cannot be read" in run.one(Status).text
    assert run.all(ArtifactMade) == []
    assert run.one(FinalAnswer).content == "Done."


async def test_agno_medium_on_the_disk_is_read_in_a_thread(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    picture, readers = tmp_path / "bee.png", list[int]()
    picture.write_bytes(b"\x89PNG\r\n\x1a\n")
    read_bytes = Path.read_bytes

    def spied(path: Path) -> bytes:
        if path == picture:
            readers.append(threading.get_ident())
        return read_bytes(path)

    def paint() -> ToolResult:
        """Paint."""
        return ToolResult(content="painted", images=[AgnoImage(filepath=picture)])

    monkeypatch.setattr(Path, "read_bytes", spied)
    script = agno_scenarios.answering(agno_scenarios.calling("paint", "{}"))
    run = await run_agent(lambda endpoint: agno_scenarios.plain(endpoint, tools=[paint]), script, tmp_path / "data")
    made = run.one(ArtifactMade)
    assert (made.name, made.media_type, made.size) == ("bee.png", "image/png", 8)
    assert readers and threading.get_ident() not in readers


async def test_image_is_encoded_in_a_thread(tmp_path: Path) -> None:
    encoders: list[int] = []
    picture: Any = Image.new("RGB", (4, 4), "red")
    save = picture.save

    def spied(*args: Any, **options: Any) -> None:
        encoders.append(threading.get_ident())
        save(*args, **options)

    picture.save = spied

    @tool(response_format="content_and_artifact")
    def paint() -> tuple[str, Any]:
        """Paint."""
        return "painted", picture

    def make(endpoint: ModelEndpoint) -> Any:
        return create_agent(langgraph_scenarios.model(endpoint), [paint])

    script = langgraph_scenarios.answering("- steps: [{tool_calls: [{name: paint, arguments: {}}]}]")
    run = await run_agent(make, script, tmp_path)
    made = run.one(ArtifactMade)
    assert (made.name, made.media_type, made.call_id) == ("paint.png", "image/png", run.call("paint").call_id)
    assert encoders and threading.get_ident() not in encoders
