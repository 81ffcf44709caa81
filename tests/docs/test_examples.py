"""The examples run unchanged with the offline model, and stay small."""

from pathlib import Path

import pytest

from limelight.agents.load import load_agent
from limelight.events import RunFinished, Status, ToolFinished
from limelight.understudy.server import Understudy
from tests.sources.live_turn import FinishedRun, checked_run
from tests.support.server import collect, serving

FOLDER = Path(__file__).parents[2] / "examples"
EXAMPLES = sorted(path.name for path in FOLDER.glob("*.py"))
QUESTION = "Please compile_notes, and read_note lost.md"


async def run(example: str, data: Path, monkeypatch: pytest.MonkeyPatch) -> FinishedRun:
    async with Understudy() as understudy:
        monkeypatch.setenv("OPENAI_BASE_URL", understudy.base_url)
        monkeypatch.setenv("OPENAI_API_KEY", understudy.key)
        async with serving(agents=[load_agent(f"{FOLDER / example}:agent")], data=data) as served:
            return checked_run(await collect(served.ask(QUESTION, format="records")))


def test_each_framework_and_a_function_have_an_example() -> None:
    assert EXAMPLES == [
        "agno_notes.py",
        "agno_workflow.py",
        "deepagents_notes.py",
        "function_notes.py",
        "smolagents_notes.py",
    ]


@pytest.mark.parametrize("example", EXAMPLES)
def test_example_fits_on_a_screen(example: str) -> None:
    assert len((FOLDER / example).read_text().splitlines()) <= 40


@pytest.mark.usefixtures("async_model_clients_are_closed")
@pytest.mark.parametrize("example", EXAMPLES)
async def test_example_shows_a_slow_tool_and_a_missing_file(
    example: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown = await run(example, tmp_path, monkeypatch)
    assert isinstance(shown.terminal, RunFinished)
    compiled = shown.call("compile_notes")
    assert "Bees dance" in str(compiled.result)
    assert (compiled.finished.duration_ms or 0) >= 900
    saying = [status for status in shown.all(Status) if status.text.startswith("Compiling 2 notes")]
    assert len(saying) == 1
    assert compiled.started_at < shown.at(saying[0]) < compiled.ended_at
    errors = [finished.error for finished in shown.all(ToolFinished) if finished.error]
    assert len(errors) == 1 and "there is no file lost.md" in errors[0]
