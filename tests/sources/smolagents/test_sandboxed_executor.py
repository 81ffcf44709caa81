"""Code agents whose code runs in a sandbox: the same events as without one, and code that is killed.

The escapes are in `tests/sandbox`. The golden files are those of agents without a sandbox.
"""

# pyright: reportMissingTypeStubs=false

import json
from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar

import msgspec
import pytest

from limelight.events import RunCancelled, RunFinished, Status, ToolOutputDelta
from limelight.sandbox.levels import LevelSetting
from limelight.sandbox.sandbox import Sandbox
from limelight.sources.base import NO_OPTIONS, Options, Source
from limelight.sources.smolagents import SmolagentsSource
from tests.sandbox.attacker import processes_in, states_of_threads
from tests.sources.conformance import Case
from tests.sources.live_turn import run_agent, serve_agent
from tests.sources.smolagents.smolagents_scenarios import CASES, coding
from tests.sources.suite import SourceSuite
from tests.support.wait import eventually, wait_for


def use_sandbox(monkeypatch: pytest.MonkeyPatch, choice: LevelSetting) -> None:
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
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, choice: LevelSetting, endless: str
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
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, choice: LevelSetting
) -> None:
    use_sandbox(monkeypatch, choice)
    steps = ("number = add(40, 2)", "print(missing)", "final_answer(number)")
    script = "".join(f'- steps: [{{text: "<code>\\n{step}\\n</code>"}}]\n' for step in steps)
    run = await run_agent(coding(), script, tmp_path)
    assert isinstance(run.terminal, RunFinished)
    assert run.answer == 42
    assert "The variable `missing` is not defined" in str(run.call("python_interpreter", 1).error)


BEATING = """
import _thread, os, time
def beat():
    stream = open("beats", "ab", 0)
    while os.fstat(stream.fileno()).st_size < 1_000_000:
        stream.write(b"x")
        time.sleep(0.001)
_thread.start_new_thread(beat, ())
while not os.path.exists("beats"):  # before the turn ends, and the thread is paused
    time.sleep(0.001)
"""


@pytest.mark.requirement("sandbox-ends")
@pytest.mark.parametrize("choice", ["bubblewrap", "landlock"])
async def test_thread_of_code_is_paused_between_turns_and_variables_persist(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, choice: LevelSetting
) -> None:
    use_sandbox(monkeypatch, choice)
    begin = f"import timeit\nnumber = 42\ntimeit.timeit('exec(s, {{}})', number=1, globals={{'s': {BEATING!r}}})"
    codes = (f"{begin}\nfinal_answer(1)", "final_answer(number)")
    script = "".join(f"- steps: [{{text: {json.dumps(f'<code>{chr(10)}{code}{chr(10)}</code>')}}}]\n" for code in codes)
    async with serve_agent(coding(additional_authorized_imports=["*"]), script, tmp_path) as server:
        first = await server.run(session_id="s")
        assert first.answer == 1
        beats = beats_below(tmp_path)
        workers = processes_in(beats.parent)
        await eventually(lambda: are_stopped(workers))
        assert (await server.run(session_id="s")).answer == 42
        assert processes_in(beats.parent) == workers
        await eventually(lambda: are_stopped(workers))
    wait_for("the end of the worker", lambda: not processes_in(beats.parent))


def beats_below(folder: Path) -> Path:
    (found,) = folder.rglob("beats")
    return found


def are_stopped(workers: list[int]) -> bool:
    return {state for pid in workers for state in states_of_threads(pid)} == {"T"}
