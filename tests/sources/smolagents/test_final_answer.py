"""smolagents: accepted answers, their form, and answers at the step limit."""

# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUntypedFunctionDecorator=false, reportUnknownArgumentType=false

from pathlib import Path
from typing import Any

import msgspec
import pydantic
import pytest
from smolagents import tool

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
from tests.sources.smolagents.smolagents_scenarios import DONE, PLAN, SUB_AGENT, calling, coding, leading


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


@pytest.mark.requirement("answers-of-smolagents")
async def test_argument_of_final_answer_is_streamed_as_the_answer(tmp_path: Path) -> None:
    script = """
- steps:
    - tool_calls: [{name: final_answer, arguments: {answer: "One \\"two\\"\\nthree four five. 😀"}}]
"""
    run = await run_agent(calling(), script, tmp_path)
    assert run.all(ToolStarted) == []
    assert len(run.all(TextDelta)) > 1
    assert run.text() == run.answer == 'One "two"\nthree four five. 😀'
    kinds = [type(event) for event in run.events if isinstance(event, TextFinished | StepFinished | FinalAnswer)]
    assert kinds == [TextFinished, StepFinished, FinalAnswer]
    assert run.one(FinalAnswer).message_id == run.one(TextFinished).message_id


async def test_refused_answer_stays_as_text_of_its_step(tmp_path: Path) -> None:
    def is_second(answer: Any, memory: Any, agent: Any) -> bool:
        return len(memory.steps) > 1

    run = await run_agent(calling(final_answer_checks=[is_second]), DONE + DONE, tmp_path)
    refused, accepted = run.all(TextFinished)
    assert run.text() == "All done.All done."
    assert run.one(FinalAnswer) == FinalAnswer(content="All done.", message_id=accepted.message_id)
    assert refused.message_id != accepted.message_id


async def test_answer_like_a_refused_text_does_not_refer_to_it(tmp_path: Path) -> None:
    """The accepted answer is not streamed: it is a variable of the agent's state."""

    def is_second(answer: Any, memory: Any, agent: Any) -> bool:
        agent.state["it"] = "All done."
        return len(memory.steps) > 1

    script = DONE + "- steps: [{tool_calls: [{name: final_answer, arguments: {answer: it}}]}]\n"
    run = await run_agent(calling(final_answer_checks=[is_second]), script, tmp_path)
    assert run.text() == "All done.it"
    assert run.one(FinalAnswer) == FinalAnswer(content="All done.")


async def test_answer_with_malformed_arguments_is_a_separate_message(tmp_path: Path) -> None:
    """smolagents passes arguments that are not JSON to the tool as a text, which is then the answer."""
    script = """- steps: [{tool_calls: [{name: final_answer, raw: '{"answer": "All done'}]}]\n"""
    run = await run_agent(calling(), script, tmp_path)
    assert run.text() == "All done"
    assert run.one(FinalAnswer) == FinalAnswer(content='{"answer": "All done')


@pytest.mark.parametrize("value", [3, 2.5, True, ["a", "b"], {"total": 3, "of": {"a": "text"}}])
async def test_answer_that_is_not_a_text_is_not_streamed_and_keeps_its_type(tmp_path: Path, value: Any) -> None:
    run = await run_agent(calling(), answering(msgspec.json.encode(value).decode()), tmp_path)
    assert run.all(TextDelta) == []
    answer = run.one(FinalAnswer)
    assert (answer.content, answer.message_id) == (value, None)


async def test_pydantic_answer_of_code_is_data(tmp_path: Path) -> None:
    class Report(pydantic.BaseModel):
        name: str
        pages: int

    @tool
    def report() -> Any:
        """Write a report."""
        return Report(name="Bees", pages=3)

    run = await run_agent(coding(report), "- steps: [{text: '<code>final_answer(report())</code>'}]\n", tmp_path)
    assert run.one(FinalAnswer).content == {"name": "Bees", "pages": 3}


async def test_custom_final_answer_tool_is_not_streamed(tmp_path: Path) -> None:
    @tool
    def final_answer(answer: str) -> str:
        """Answer in capitals.

        Args:
            answer: What to say.
        """
        return answer.upper()

    run = await run_agent(calling(final_answer), DONE, tmp_path)
    assert run.all(TextDelta) == []
    assert run.one(FinalAnswer) == FinalAnswer(content="ALL DONE.")


async def test_answer_of_a_managed_agent_is_streamed_as_its_text(tmp_path: Path) -> None:
    run = await run_agent(leading(calling, calling), SUB_AGENT, tmp_path)
    assert run.text("helper-1") == "The sum is five."
    assert run.text() == run.answer == "All done."


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
    assert run.text() == "All done."
    assert Usage(model="understudy", input_tokens=5, output_tokens=3) in run.events


async def test_answer_beside_another_tool_call_is_not_final(tmp_path: Path) -> None:
    script = """
- steps:
    - tool_calls:
        - {name: final_answer, arguments: {answer: Too early.}}
        - {name: add, arguments: {a: 1, b: 1}}
"""
    run = await run_agent(calling(), script + DONE, tmp_path)
    assert run.text() == "Too early.All done."
    assert run.one(FinalAnswer) == FinalAnswer(content="All done.", message_id=run.all(TextFinished)[-1].message_id)
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
