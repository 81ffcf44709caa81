"""Code agents whose code runs in a sandbox: the same events as without one, and code that is killed.

The escapes are in `tests/sandbox`. The golden files are those of agents without a sandbox.
"""

# pyright: reportMissingTypeStubs=false

from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar

import msgspec
import pytest

from limelight.events import RunCancelled, RunFinished, Status, ToolOutputDelta
from limelight.sandbox.levels import Choice
from limelight.sandbox.sandbox import Sandbox
from limelight.sources.base import NO_OPTIONS, Options, Source
from limelight.sources.smolagents import SmolagentsSource
from tests.sources.conformance import Case
from tests.sources.live_turn import run_agent, serve_agent
from tests.sources.smolagents.smolagents_scenarios import CASES, coding
from tests.sources.suite import SourceSuite


def use_sandbox(monkeypatch: pytest.MonkeyPatch, choice: Choice) -> None:
    """Give all agents of smolagents a sandbox, as the setting `sandbox` does."""
    original = SmolagentsSource.__init__

    def with_sandbox(self: SmolagentsSource, target: object, options: Options = NO_OPTIONS) -> None:
        original(self, target, msgspec.structs.replace(options, sandbox=Sandbox(choice=choice)))

    monkeypatch.setattr(SmolagentsSource, "__init__", with_sandbox)


class TestSandboxedSmolagents(SourceSuite):
    source: ClassVar[type[Source]] = SmolagentsSource
    cases: ClassVar[Mapping[str, Case]] = CASES

    @pytest.fixture(autouse=True)
    def _sandbox(self, monkeypatch: pytest.MonkeyPatch) -> None:
        use_sandbox(monkeypatch, "landlock")


@pytest.mark.requirement("sandbox-stop")
@pytest.mark.parametrize("choice", ["bubblewrap", "landlock"])
@pytest.mark.parametrize("endless", ["while True: pass", "time.sleep(600)"])
async def test_stop_ends_code_that_would_run_for_ever(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, choice: Choice, endless: str
) -> None:
    """Without a sandbox, a status says that the code still runs."""
    use_sandbox(monkeypatch, choice)
    script = f'- steps: [{{text: "<code>\\nimport time\\nprint(1)\\n{endless}\\n</code>"}}]'
    async with serve_agent(coding(), script, tmp_path) as server:
        run = await server.run_until(lambda event: isinstance(event, ToolOutputDelta))
    assert isinstance(run.terminal, RunCancelled)
    assert run.all(Status) == []


@pytest.mark.requirement("sandbox-same-events")
@pytest.mark.parametrize("choice", ["bubblewrap", "landlock"])
async def test_variables_live_from_step_to_step_and_an_error_names_its_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, choice: Choice
) -> None:
    use_sandbox(monkeypatch, choice)
    steps = ("number = add(40, 2)", "print(missing)", "final_answer(number)")
    script = "".join(f'- steps: [{{text: "<code>\\n{step}\\n</code>"}}]\n' for step in steps)
    run = await run_agent(coding(), script, tmp_path)
    assert isinstance(run.terminal, RunFinished)
    assert run.answer == 42
    assert "The variable `missing` is not defined" in str(run.call("python_interpreter", 1).error)
