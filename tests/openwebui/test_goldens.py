"""The output of each display for the server's golden streams, compared with golden files.

A golden file has a line for each event, then one for each item of the final message, then one for each other chunk. The
batches are not in it, because they depend on timing.
"""

import asyncio
import json
import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.dialects.transcripts import SCRIPTS
from tests.openwebui.chat import Chat, Output
from tests.openwebui.frame_server import RUN_ID, FrameServer
from tests.openwebui.function_rules import Json, pipe_module
from tests.openwebui.output_items import calls_without_output

pytestmark = pytest.mark.asyncio(loop_scope="module")

STREAMS = Path(__file__).parents[1] / "dialects" / "golden"
GOLDEN = Path(__file__).parent / "golden"
DISPLAYS = ("native", "collapse", "details", "plain")
WRITE = os.environ.get("LIMELIGHT_GOLDEN") == "write"
BODIES = {"/artifacts/art_1": b"\x89PNG\r\n\x1a\n", f"/runs/{RUN_ID}/tools/c1": b"0123456789" * 5000}


@pytest.fixture(autouse=True)
def clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """Stop the clock, so that reasoning takes no time, and show all statuses of a batch."""
    monkeypatch.setattr(pipe_module(), "time", SimpleNamespace(monotonic=lambda: 0.0))
    monkeypatch.setattr(pipe_module(), "MAX_STATUSES_PER_BATCH", 1000)


async def never_answer(_: Json) -> Any:
    await asyncio.Event().wait()


def shortened(value: Any) -> Any:
    """Shorten long texts, which would make the files unreadable."""
    if isinstance(value, str) and len(value) > 2000:
        return f"{value[:60]} … {value[-60:]} ({len(value)} characters)"
    if isinstance(value, dict):
        return {key: shortened(inner) for key, inner in value.items()}  # pyright: ignore[reportUnknownVariableType]
    return [shortened(inner) for inner in value] if isinstance(value, list) else value  # pyright: ignore[reportUnknownVariableType]


def golden_lines(output: Output) -> list[Json]:
    plain = "".join(chunk for chunk in output.chunks if isinstance(chunk, str))
    others = [chunk for chunk in output.chunks if isinstance(chunk, dict) and "output_index" not in chunk]
    lines = [*({"event": event} for event in output.events), *({"item": item} for item in output.items)]
    return [*lines, *([{"text": plain}] if plain else []), *({"chunk": chunk} for chunk in others)]


@pytest.mark.parametrize("display", DISPLAYS)
@pytest.mark.parametrize("script", SCRIPTS)
async def test_output_is_the_golden_output(script: str, display: str, server: FrameServer) -> None:
    server.set_stream((STREAMS / f"{script}.typed.sse").read_bytes())
    server.bodies = BODIES
    output = await Chat(server.url, ask=never_answer, DISPLAY=display).send("What is limelight?")
    assert calls_without_output(output.items) == []
    content = "".join(json.dumps(shortened(line), ensure_ascii=False) + "\n" for line in golden_lines(output))
    path = GOLDEN / f"{script}.{display}.jsonl"
    if WRITE:
        path.write_text(content, encoding="utf-8")
    assert path.exists(), f"{path.name} is missing: run `make golden` and look at what it writes"
    assert content.splitlines() == path.read_text(encoding="utf-8").splitlines(), "if that is meant, run `make golden`"


async def test_every_golden_file_has_a_script_and_a_display() -> None:
    expected = {f"{script}.{display}.jsonl" for script in SCRIPTS for display in DISPLAYS}
    assert {path.name for path in GOLDEN.iterdir()} == expected
