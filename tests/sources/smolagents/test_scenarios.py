"""smolagents: the scenarios of all sources, and smolagents' own cases."""

# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUntypedFunctionDecorator=false, reportUnknownArgumentType=false

import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar, get_args

import pytest
from smolagents import OpenAIModel
from smolagents import agents as smolagents_agents

from limelight.events import AgentStarted, RunFailed, RunFinished, Usage
from limelight.sources.base import Source
from limelight.sources.smolagents import SmolagentsSource
from limelight.sources.smolagents.instrument import DROPS, OBSERVED
from tests.sources.conformance import Case
from tests.sources.live_turn import ModelEndpoint, run_agent
from tests.sources.smolagents.smolagents_scenarios import CASES, ONE_TOOL, calling, coding, leading, model_at
from tests.sources.suite import SourceSuite


class TestSmolagents(SourceSuite):
    source: ClassVar[type[Source]] = SmolagentsSource
    cases: ClassVar[Mapping[str, Case]] = CASES


# Accepted targets


def test_accepts_does_not_import_smolagents() -> None:
    code = (
        "import sys; from limelight.sources.smolagents import SmolagentsSource as S; "
        "assert not S.accepts(lambda: 1) and not S.accepts(object()); "
        "assert 'smolagents' not in sys.modules and 'PIL' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_accepts_both_kinds_of_agents_and_subclasses() -> None:
    endpoint = ModelEndpoint("http://127.0.0.1:1/v1", "key")

    class Mine(smolagents_agents.CodeAgent):
        pass

    made = Mine(tools=[], model=model_at(endpoint), name="mine", description="Does things.\nAnd more.")
    assert SmolagentsSource.accepts(made)
    assert SmolagentsSource.accepts(calling()(endpoint))
    assert not SmolagentsSource.accepts(Mine)
    assert SmolagentsSource(made).description == "Does things."


def test_every_stream_item_of_smolagents_is_observed_or_in_drops() -> None:
    yielded = {kind.__name__ for kind in get_args(smolagents_agents.StreamEvent)}
    assert yielded == OBSERVED | DROPS.keys()
    assert not OBSERVED & DROPS.keys()


# With a model that improvises


@pytest.mark.parametrize("make", [leading(calling, calling), leading(coding, coding), leading(coding, calling)])
@pytest.mark.parametrize("question", ["What is 17 * 23?", "two helpers at once", "try an error, and an approval"])
async def test_run_with_the_improvising_understudy_has_an_answer(make: Any, question: str, tmp_path: Path) -> None:
    run = await run_agent(make, "", tmp_path, question)
    assert isinstance(run.terminal, RunFinished), run.terminal
    assert run.answer
    if question.startswith("two"):
        assert {a.name for a in run.all(AgentStarted)} == {"helper"}


# The console, and models of all kinds


@pytest.mark.parametrize("make", [calling(stream_outputs=True), calling(), coding()])
async def test_run_prints_nothing(make: Any, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    await run_agent(make, ONE_TOOL, tmp_path)
    out, err = capfd.readouterr()
    assert out == ""
    assert "Step" not in err and "New run" not in err


async def test_model_that_cannot_stream_is_shown_at_its_end(tmp_path: Path) -> None:
    def make(endpoint: ModelEndpoint) -> object:
        agent: Any = calling()(endpoint)

        class Careful(OpenAIModel):
            def generate(self, *args: Any, **kwargs: Any) -> Any:
                return super().generate(*args, **kwargs)

        agent.model.__class__ = Careful
        return agent

    run = await run_agent(make, ONE_TOOL, tmp_path)
    assert run.reasoning() == "I add them."
    assert run.call("add").started.args == {"a": 2, "b": 3}
    assert sum(u.input_tokens for u in run.all(Usage)) == 200


async def test_model_error_is_one_sentence(tmp_path: Path) -> None:
    run = await run_agent(calling(), "- steps: [{error: {status: 500, message: On fire.}}]\n", tmp_path)
    failed = run.one(RunFailed)
    assert failed.message == "InternalServerError: Error code: 500 - On fire."
