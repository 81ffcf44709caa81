"""Agents that act by writing code: the code while it is written, what it prints, the tools and agents that it calls."""

# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUntypedFunctionDecorator=false, reportUnknownArgumentType=false

import threading
from pathlib import Path
from typing import Any

import msgspec
import pytest
from smolagents import tool
from smolagents.local_python_executor import CodeOutput, PythonExecutor

from limelight import current
from limelight.events import (
    AgentFinished,
    ArtifactMade,
    RunCancelled,
    RunFinished,
    StepFinished,
    ToolArgsDelta,
    ToolOutputDelta,
    ToolReady,
    ToolStarted,
)
from tests.sources.conformance import SCENARIOS, Case
from tests.sources.live_turn import Played, theatre
from tests.sources.smolagents.smolagents_scenarios import CODE, CUT_STREAM, MODEL_ERROR, calling, coding, leading, odd
from tests.sources.suite import golden
from tests.support.wait import eventually


def writing(*blocks: str, thought: str = "Now.") -> str:
    """A script whose turns write these pieces of code, one each, and then the answer."""
    turns = [*blocks, 'final_answer("All done.")']
    return "".join(_turn(f"{thought}\n<code>\n{code}\n</code>") for code in turns)


def _turn(text: str) -> str:
    return f"- steps: [{{text: {msgspec.json.encode(text).decode()}}}, {{usage: {{input: 100, output: 7}}}}]\n"


SUB_AGENT = (
    """
- match: add two and three
  turns:
    - steps: [{tool_calls: [{name: add, arguments: {a: 2, b: 3}}]}]
    - steps: [{tool_calls: [{name: final_answer, arguments: {answer: The sum is five.}}]}]
"""
    + "- turns:\n"
    + "".join(f"    {line}\n" for line in writing('report = helper("add two and three")\nprint(report)').splitlines())
)

CODE_CASES = {
    "text": Case(coding(), writing()),
    "reasoning": Case(coding(), writing(thought="Let me think.")),
    "one_tool": Case(coding(), writing("add(2, 3)")),
    "tool_error": Case(coding(), writing('fail("no such file")')),
    "malformed_args": Case(coding(), writing("add(2,")),
    "unknown_tool": Case(coding(), writing("nothing_like_it(2)")),
    "sub_agent": Case(leading(coding, calling), SUB_AGENT),
    "steps": Case(coding(), writing("add(2, 3)")),
    "usage": Case(coding(), writing("add(2, 3)")),
    "code": Case(coding(), CODE),
    "model_error": Case(coding(), MODEL_ERROR),
    "cut_stream": Case(coding(), CUT_STREAM),
    "big_result": Case(coding(), writing("text = big(50000)")),
    "split_unicode": Case(coding(), writing('final_answer("Grüße 👩‍👩‍👧 世界 All done.")')),
}


async def play(make: Any, script: str, data: Path, **body: Any) -> Played:
    async with theatre(make, script, data) as stage:
        return await stage.play(**body)


@pytest.mark.parametrize("name", CODE_CASES)
async def test_the_scenarios_are_played_by_code_too(name: str, tmp_path: Path) -> None:
    run = await play(CODE_CASES[name].make, CODE_CASES[name].script, tmp_path)
    SCENARIOS[name].expect(run)
    golden("smolagents_code", name, run)


async def test_the_code_is_seen_while_it_is_written(tmp_path: Path) -> None:
    run = await play(coding(), writing('x = "é\\\\n"\n\nprint(x)'), tmp_path)
    call = run.call("python_interpreter")
    assert call.started.args is None
    assert len(run.all(ToolArgsDelta, call_id=call.call_id)) > 3
    assert msgspec.json.decode(call.args_text) == call.args == {"code": 'x = "é\\\\n"\n\nprint(x)'}
    assert run.reasoning() == "Now.Now."


async def test_prints_are_heard_while_the_code_runs(tmp_path: Path) -> None:
    """The run is stopped after the first line, and the second is never printed."""
    script = writing('print("one")\nwhile True:\n    pass')
    async with theatre(coding(), script, tmp_path) as stage:
        run = await stage.play_until(lambda e: isinstance(e, ToolOutputDelta))
    assert run.call("python_interpreter").output == "one\n"
    assert isinstance(run.terminal, RunCancelled)


async def test_prints_of_functions_and_of_failing_code_are_heard(tmp_path: Path) -> None:
    script = writing('def greet():\n    print("from inside")\n    return 1 / 0\ngreet()')
    call = (await play(coding(), script, tmp_path)).call("python_interpreter")
    assert call.output == "from inside\n"
    assert "ZeroDivisionError" in (call.error or "")


async def test_an_error_in_code_is_the_calls_and_the_steps(tmp_path: Path) -> None:
    run = await play(coding(), writing('fail("no luck")'), tmp_path)
    assert run.call("fail").error == "ValueError: no luck"
    assert "no luck" in (run.call("python_interpreter").error or "")
    assert "no luck" in (run.all(StepFinished)[0].error or "")
    assert isinstance(run.terminal, RunFinished)


async def test_an_error_that_code_catches_is_only_the_tools(tmp_path: Path) -> None:
    run = await play(coding(), writing('try:\n    fail("no luck")\nexcept ValueError:\n    print("caught")'), tmp_path)
    assert run.call("fail").error == "ValueError: no luck"
    assert run.call("python_interpreter").error is None
    assert run.call("python_interpreter").output == "caught\n"


async def test_no_code_at_all_is_a_thought_and_an_error(tmp_path: Path) -> None:
    script = _turn("I have no code to show, sorry!") + writing()
    run = await play(coding(), script, tmp_path)
    assert run.reasoning().startswith("I have no code to show, sorry!")
    assert run.all(StepFinished)[0].error
    assert run.answer == "All done."


async def test_an_empty_block_leaves_no_call_open(tmp_path: Path) -> None:
    run = await play(coding(), _turn("Hm.\n<code>\n</code>") + writing(), tmp_path)
    assert [c.name for c in run.all(ToolStarted)] == ["python_interpreter"]
    assert run.all(StepFinished)[0].error


async def test_code_in_a_fence_is_shown_when_it_runs(tmp_path: Path) -> None:
    run = await play(coding(), _turn("So:\n```python\nadd(2, 3)\n```") + writing(), tmp_path)
    assert run.call("python_interpreter").args == {"code": "add(2, 3)"}


async def test_other_tags_are_known(tmp_path: Path) -> None:
    script = _turn("So:\n```python\nadd(2, 3)\n```\n") + _turn('```python\nfinal_answer("All done.")\n```')
    run = await play(coding(code_block_tags="markdown"), script, tmp_path)
    assert run.reasoning() == "So:"
    assert run.call("python_interpreter").started.args is None
    assert run.call("python_interpreter").args == {"code": "add(2, 3)"}


async def test_thought_and_code_that_come_as_an_object(tmp_path: Path) -> None:
    def turn(thought: str, code: str) -> str:
        return _turn(msgspec.json.encode({"thought": thought, "code": code}).decode())

    script = turn("I add.", "add(2, 3)") + turn("I answer.", 'final_answer("All done.")')
    run = await play(coding(use_structured_outputs_internally=True), script, tmp_path)
    assert run.reasoning() == "I add.I answer."
    assert [call.args for call in run.all(ToolReady)] == []
    assert run.call("python_interpreter").args == {"code": "add(2, 3)"}


async def test_helpers_that_code_calls_are_under_their_calls(tmp_path: Path) -> None:
    script = """
- match: job one
  turns: [{steps: [{text: "One.\\n<code>\\nfinal_answer(1)\\n</code>"}]}]
- match: job two
  turns: [{steps: [{text: "Two.\\n<code>\\nfinal_answer(2)\\n</code>"}]}]
- turns:
""" + "".join(f"    {line}\n" for line in writing('helper("job one")\nhelper(task="job two")').splitlines())
    run = await play(leading(coding, coding), script, tmp_path)
    outer = run.call("python_interpreter")
    for number, (name, said) in enumerate([("helper-1", "One."), ("helper-2", "Two.")]):
        started, call = run.agent("helper", number), run.call("helper", number)
        assert (started.agent_id, started.call_id, started.parent_id) == (name, call.call_id, "")
        assert run.reasoning(name) == said
        ended = run.one(AgentFinished, agent_id=name)
        assert outer.begun_at < call.begun_at < run.at(started) < run.at(ended) < call.ended_at < outer.ended_at
        assert call.args == {"task": f"job {'one' if number == 0 else 'two'}"}


async def test_tools_that_code_calls_know_whose_run_it_is(tmp_path: Path) -> None:
    @tool
    def whose(question: str) -> str:
        """Say for whom this is.

        Args:
            question: Anything.
        """
        context = current()
        return context.session_id if context else "nobody's"

    run = await play(coding(whose), writing('whose("this")'), tmp_path, session_id="mine")
    assert run.call("whose").result == "mine"


async def test_a_picture_that_code_ends_with_is_an_artifact(tmp_path: Path) -> None:
    run = await play(coding(odd), writing('picture = odd("image")\npicture'), tmp_path)
    assert [made.call_id for made in run.all(ArtifactMade)] == [
        run.call("odd").call_id,
        run.call("python_interpreter").call_id,
    ]


class Elsewhere(PythonExecutor):
    """An executor that is not smolagents' own: nothing is heard of the code but its end."""

    def send_tools(self, tools: dict[str, Any]) -> None:
        assert all(type(tool).__module__.startswith(("smolagents", "tests")) for tool in tools.values())

    def send_variables(self, variables: dict[str, Any]) -> None: ...

    def __call__(self, code_action: str) -> CodeOutput:
        final = "final_answer" in code_action
        return CodeOutput(output="All done." if final else 7, logs="" if final else "far away\n", is_final_answer=final)


async def test_another_executor_is_heard_at_the_end(tmp_path: Path) -> None:
    call = (await play(coding(executor=Elsewhere()), writing("1 + 6"), tmp_path)).call("python_interpreter")
    assert (call.output, call.result) == ("far away\n", 7)


async def test_code_that_loops_for_ever_is_stopped(tmp_path: Path) -> None:
    async with theatre(coding(), writing("while True:\n    x = 1"), tmp_path) as stage:
        run = await stage.play_until(lambda e: isinstance(e, ToolReady))
        await eventually(lambda: not working())
    assert isinstance(run.terminal, RunCancelled)
    assert not any("cannot be interrupted" in str(event) for event in run.events)


def working() -> list[str]:
    """The threads in which agents are at work."""
    return [thread.name for thread in threading.enumerate() if thread.name.startswith("limelight-run_")]


async def test_variables_live_as_long_as_the_conversation(tmp_path: Path) -> None:
    script = """
- match: remember
  turns: [{steps: [{text: "<code>\\nkept = 7\\ndef more():\\n    return kept + 1\\nfinal_answer('ok')\\n</code>"}]}]
- match: recall
  turns: [{steps: [{text: "<code>\\nkept = 8\\nfinal_answer(more())\\n</code>"}]}]
"""
    async with theatre(coding(max_steps=2), script, tmp_path) as stage:
        await stage.play("remember", session_id="a")
        assert (await stage.play("recall", session_id="a")).answer == 9
        other = await stage.play("recall", session_id="b")
    assert "more" in (other.all(StepFinished)[0].error or "")
