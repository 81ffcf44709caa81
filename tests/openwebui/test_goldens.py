"""The server's golden streams, played over HTTP, and what each display makes of them in the chat.

A golden file has a line for each event that was emitted, then one for each item of the message as it is at the end,
then one for each other chunk. Where the stream was cut into bundles is not in it, because that is a matter of time.
"""

import asyncio
import json
import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.dialects.transcripts import SCRIPTS
from tests.openwebui.chat import Chat, Seen
from tests.openwebui.frame_server import RUN_ID, Stage
from tests.openwebui.function_rules import Json, pipe_module
from tests.openwebui.output import unanswered

pytestmark = pytest.mark.asyncio(loop_scope="module")

STREAMS = Path(__file__).parents[1] / "dialects" / "golden"
GOLDEN = Path(__file__).parent / "golden"
DISPLAYS = ("native", "collapse", "details", "plain")
WRITE = os.environ.get("LIMELIGHT_GOLDEN") == "write"
BODIES = {"/artifacts/art_1": b"\x89PNG\r\n\x1a\n", f"/runs/{RUN_ID}/tools/c1": b"0123456789" * 5000}


@pytest.fixture(autouse=True)
def clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """Thoughts take no time, and all lines are shown that a slower run would have shown."""
    monkeypatch.setattr(pipe_module(), "time", SimpleNamespace(monotonic=lambda: 0.0))
    monkeypatch.setattr(pipe_module(), "MAX_STATUSES_PER_BATCH", 1000)


async def nobody(_: Json) -> Any:
    await asyncio.Event().wait()


def shortened(value: Any) -> Any:
    """Long texts would bury the rest."""
    if isinstance(value, str) and len(value) > 2000:
        return f"{value[:60]} … {value[-60:]} ({len(value)} characters)"
    if isinstance(value, dict):
        return {key: shortened(inner) for key, inner in value.items()}  # pyright: ignore[reportUnknownVariableType]
    return [shortened(inner) for inner in value] if isinstance(value, list) else value  # pyright: ignore[reportUnknownVariableType]


def lines_of(seen: Seen) -> list[Json]:
    plain = "".join(chunk for chunk in seen.chunks if isinstance(chunk, str))
    others = [chunk for chunk in seen.chunks if isinstance(chunk, dict) and "output_index" not in chunk]
    found = [*({"event": event} for event in seen.events), *({"item": item} for item in seen.items)]
    return [*found, *([{"text": plain}] if plain else []), *({"chunk": chunk} for chunk in others)]


@pytest.mark.parametrize("display", DISPLAYS)
@pytest.mark.parametrize("script", SCRIPTS)
async def test_what_is_seen_is_the_golden_one(script: str, display: str, stage: Stage) -> None:
    stage.play((STREAMS / f"{script}.typed.sse").read_bytes())
    stage.bodies = BODIES
    seen = await Chat(stage.url, ask=nobody, DISPLAY=display).say("What is limelight?")
    assert unanswered(seen.items) == []
    found = "".join(json.dumps(shortened(line), ensure_ascii=False) + "\n" for line in lines_of(seen))
    path = GOLDEN / f"{script}.{display}.jsonl"
    if WRITE:
        path.write_text(found, encoding="utf-8")
    assert path.exists(), f"{path.name} is missing: run `make golden` and look at what it writes"
    assert found.splitlines() == path.read_text(encoding="utf-8").splitlines(), "if that is meant, run `make golden`"


async def test_no_golden_file_is_left_over() -> None:
    expected = {f"{script}.{display}.jsonl" for script in SCRIPTS for display in DISPLAYS}
    assert {path.name for path in GOLDEN.iterdir()} == expected
