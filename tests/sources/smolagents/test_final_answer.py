"""smolagents: accepted answers, their form, and answers at the step limit."""

# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUntypedFunctionDecorator=false, reportUnknownArgumentType=false

from pathlib import Path
from typing import Any

import pytest

from limelight.events import (
    FinalAnswer,
    Plan,
    RunFinished,
    StepFinished,
    StepStarted,
    TextDelta,
    TextFinished,
    ToolStarted,
    Usage,
)
from limelight.sources.base import Item, Options
from limelight.sources.smolagents import SmolagentsSource
from limelight.understudy.scripts import parse_scripts
from limelight.understudy.server import Understudy
from tests.sources.fake_turn import new_turn
from tests.sources.live_turn import ModelEndpoint, run_agent
from tests.sources.smolagents.smolagents_scenarios import DONE, PLAN, TEXT, calling


def answering(answer: str) -> str:
    return f"- steps:\n    - tool_calls: [{{name: final_answer, arguments: {{answer: {answer}}}}}]\n"


@pytest.mark.parametrize(
    ("given", "sources"),
    [
        (
            '{title: Bees, content: They dance., sources: ["https://a.example", {url: "https://b.example"}]}',
            ("https://a.example", "https://b.example"),
        ),
        ("""'{"title": "Bees", "content": "They dance."}'""", ()),
    ],
    ids=["object", "JSON text"],
)
async def test_answer_with_a_title_is_a_structured_answer(given: str, sources: tuple[str, ...], tmp_path: Path) -> None:
    answer = (await run_agent(calling(), answering(given), tmp_path)).one(FinalAnswer)
    assert (answer.title, answer.content, answer.sources) == ("Bees", "They dance.", sources)


async def test_smolagents_drops_reasoning_content(tmp_path: Path) -> None:
    """As the documentation says; the content beside it is the reasoning."""
    answer = "{tool_calls: [{name: final_answer, arguments: {answer: All done.}}]}"
    run = await run_agent(calling(), f"- steps: [{{reasoning: Hidden.}}, {{text: Shown.}}, {answer}]", tmp_path)
    assert (run.reasoning(), run.answer) == ("Shown.", "All done.")


@pytest.mark.parametrize(
    ("given", "answer"), [("[1, two, {three: 3}]", [1, "two", {"three": 3}]), ("null", "")], ids=["list", "null"]
)
async def test_answer_of_any_json_type_is_an_answer(given: str, answer: Any, tmp_path: Path) -> None:
    run = await run_agent(calling(), answering(given), tmp_path)
    assert run.answer == answer
    assert isinstance(run.terminal, RunFinished)


async def test_final_answer_is_not_shown_as_a_tool_call(tmp_path: Path) -> None:
    run = await run_agent(calling(), TEXT, tmp_path)
    assert run.all(ToolStarted) == []
    assert run.all(TextDelta) == []


async def test_answer_that_a_check_rejects_is_not_final(tmp_path: Path) -> None:
    def is_long(answer: Any, memory: Any, agent: Any) -> bool:
        return len(answer) > 5

    run = await run_agent(calling(final_answer_checks=[is_long]), answering("no") + DONE, tmp_path)
    assert run.answer == "All done."
    first, second = run.all(StepFinished)
    assert "is_long" in (first.error or "") and second.error is None


async def test_reply_to_a_check_is_not_reasoning_of_the_agent(tmp_path: Path) -> None:
    def judged(answer: Any, memory: Any, agent: Any) -> bool:
        return "fine" in agent.model.generate([{"role": "user", "content": "judge this"}]).content

    script = """
- match: judge this
  turns: [{steps: [{text: It is fine.}, {usage: {input: 5, output: 3}}]}]
- turns:
    - steps:
        - text: I answer.
        - tool_calls: [{name: final_answer, arguments: {answer: All done.}}]
"""
    run = await run_agent(calling(final_answer_checks=[judged]), script, tmp_path)
    assert run.reasoning() == "I answer."
    assert run.text() == ""
    assert Usage(model="understudy", input_tokens=5, output_tokens=3) in run.events


async def test_answer_beside_another_tool_call_is_not_final(tmp_path: Path) -> None:
    script = """
- steps:
    - tool_calls:
        - {name: final_answer, arguments: {answer: Too early.}}
        - {name: add, arguments: {a: 1, b: 1}}
"""
    run = await run_agent(calling(), script + DONE, tmp_path)
    assert run.answer == "All done."
    assert run.call("add").result == 2
    assert "do not perform any other tool calls" in (run.all(StepFinished)[0].error or "")


async def test_reply_without_a_call_is_reasoning_and_the_agent_continues(tmp_path: Path) -> None:
    run = await run_agent(calling(), "- steps:\n    - text: Just talking.\n" + DONE, tmp_path)
    assert run.reasoning() == "Just talking."
    assert run.all(StepFinished)[0].error
    assert run.answer == "All done."


ADDING = """
- steps: [{tool_calls: [{name: add, arguments: {a: 1, b: 1}}]}]
- steps: [{tool_calls: [{name: add, arguments: {a: 2, b: 2}}]}]
- steps: [{text: "Ran out of steps, but it is 4."}]
"""


async def test_step_limit_gives_the_answer_and_no_step_twice(tmp_path: Path) -> None:
    run = await run_agent(calling(max_steps=2), ADDING, tmp_path)
    assert run.terminal == RunFinished(code="max_steps")
    assert [s.number for s in run.all(StepStarted)] == [s.number for s in run.all(StepFinished)] == [1, 2]
    assert [c.name for c in run.all(ToolStarted)] == ["add", "add"]
    answer = run.one(FinalAnswer)
    assert answer.content == run.text() == "Ran out of steps, but it is 4."
    assert answer.message_id == run.one(TextFinished).message_id
    assert len(run.all(Usage)) == 3


async def configured(options: Options, script: str) -> list[Item]:
    """The items of one turn of a source with these options."""
    async with Understudy(parse_scripts(script)) as understudy:
        source = SmolagentsSource(calling()(ModelEndpoint(understudy.base_url, understudy.key)), options)
        return [item async for item in source.run(new_turn("go"))]


async def test_step_limit_can_be_configured() -> None:
    items = await configured(Options(max_steps=2), ADDING)
    assert items[-1] == RunFinished(code="max_steps")


async def test_model_error_at_the_step_limit_gives_smolagents_own_answer(tmp_path: Path) -> None:
    script = "\n".join(ADDING.strip().splitlines()[:1]) + "\n- steps: [{error: {status: 500, message: On fire.}}]\n"
    run = await run_agent(calling(max_steps=1), script, tmp_path)
    assert run.terminal == RunFinished(code="max_steps")
    assert "On fire." in run.answer


async def test_planning_interval_can_be_configured() -> None:
    items = await configured(Options(planning_interval=1), PLAN)
    assert len([item for item in items if isinstance(item, Plan)]) == 2
