"""smolagents: code agents. Code and its output are streamed; its tools and agents are calls inside of it."""

# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUntypedFunctionDecorator=false, reportUnknownArgumentType=false

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
from tests.sources.live_turn import run_agent, serve_agent
from tests.sources.smolagents.smolagents_scenarios import (
    CODE,
    CUT_STREAM,
    MODEL_ERROR,
    calling,
    coding,
    leading,
    odd,
    working,
)
from tests.sources.suite import golden
from tests.support.wait import eventually


def writing(*blocks: str, thought: str = "Now.") -> str:
    """A script with one piece of code in each turn, and then the answer."""
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


@pytest.mark.parametrize("name", CODE_CASES)
async def test_code_agent_plays_the_scenarios(name: str, tmp_path: Path) -> None:
    run = await run_agent(CODE_CASES[name].make, CODE_CASES[name].script, tmp_path)
    SCENARIOS[name].expect(run)
    golden("smolagents_code", name, run)


async def test_code_is_streamed_as_arguments(tmp_path: Path) -> None:
    run = await run_agent(coding(), writing('x = "é\\\\n"\n\nprint(x)'), tmp_path)
    call = run.call("python_interpreter")
    assert call.started.args is None
    assert len(run.all(ToolArgsDelta, call_id=call.call_id)) > 3
    assert msgspec.json.decode(call.args_text) == call.args == {"code": 'x = "é\\\\n"\n\nprint(x)'}
    assert run.reasoning() == "Now.Now."


async def test_prints_are_streamed_while_code_runs(tmp_path: Path) -> None:
    """The run is stopped after the first line, and the second is never printed."""
    script = writing('print("one")\nwhile True:\n    pass')
    run = await run_agent(coding(), script, tmp_path, stop_at=lambda e: isinstance(e, ToolOutputDelta))
    assert run.call("python_interpreter").output == "one\n"
    assert isinstance(run.terminal, RunCancelled)


async def test_prints_of_functions_and_of_failing_code_are_streamed(tmp_path: Path) -> None:
    script = writing('def greet():\n    print("from inside")\n    return 1 / 0\ngreet()')
    call = (await run_agent(coding(), script, tmp_path)).call("python_interpreter")
    assert call.output == "from inside\n"
    assert "ZeroDivisionError" in (call.error or "")


async def test_error_in_code_fails_the_call_and_the_step(tmp_path: Path) -> None:
    run = await run_agent(coding(), writing('fail("no luck")'), tmp_path)
    assert run.call("fail").error == "ValueError: no luck"
    assert "no luck" in (run.call("python_interpreter").error or "")
    assert "no luck" in (run.all(StepFinished)[0].error or "")
    assert isinstance(run.terminal, RunFinished)


async def test_error_that_code_catches_fails_only_the_tool_call(tmp_path: Path) -> None:
    run = await run_agent(
        coding(), writing('try:\n    fail("no luck")\nexcept ValueError:\n    print("caught")'), tmp_path
    )
    assert run.call("fail").error == "ValueError: no luck"
    assert run.call("python_interpreter").error is None
    assert run.call("python_interpreter").output == "caught\n"


async def test_reply_without_code_is_reasoning_and_a_step_error(tmp_path: Path) -> None:
    script = _turn("I have no code to show, sorry!") + writing()
    run = await run_agent(coding(), script, tmp_path)
    assert run.reasoning().startswith("I have no code to show, sorry!")
    assert run.all(StepFinished)[0].error
    assert run.answer == "All done."


async def test_empty_code_block_leaves_no_call_open(tmp_path: Path) -> None:
    run = await run_agent(coding(), _turn("Hm.\n<code>\n</code>") + writing(), tmp_path)
    assert [c.name for c in run.all(ToolStarted)] == ["python_interpreter"]
    assert run.all(StepFinished)[0].error


@pytest.mark.requirement("code-while-written")
@pytest.mark.parametrize("fence", ["```python", "```py"])
async def test_code_in_a_markdown_fence_is_streamed(tmp_path: Path, fence: str) -> None:
    run = await run_agent(coding(), _turn(f"So:\n{fence}\nadd(2, 3)\n```") + writing(), tmp_path)
    assert run.reasoning() == "So:Now."
    assert run.call("python_interpreter").started.args is None
    assert run.call("python_interpreter").args == {"code": "add(2, 3)"}
    assert run.call("python_interpreter").result == 5


async def test_code_in_a_markdown_fence_before_code_in_tags_is_not_run(tmp_path: Path) -> None:
    script = _turn("Like:\n```python\nadd(1, 1)\n```\nSo:\n<code>\nadd(2, 3)\n</code>") + writing()
    run = await run_agent(coding(), script, tmp_path)
    example, code = run.call("python_interpreter", 0), run.call("python_interpreter", 1)
    assert (example.args, example.error) == ({"code": "add(1, 1)"}, "the call was never run")
    assert (code.args, code.result, code.error) == ({"code": "add(2, 3)"}, 5, None)


async def test_unfinished_fence_fails_the_call_with_the_step(tmp_path: Path) -> None:
    run = await run_agent(coding(), _turn("So:\n```python\nadd(2, 3)") + writing(), tmp_path)
    call = run.call("python_interpreter", 0)
    assert call.args == {"code": "add(2, 3)"}
    assert call.error == run.all(StepFinished)[0].error
    assert "code snippet is invalid" in (call.error or "")
    assert run.answer == "All done."


async def test_custom_code_tags_are_recognized(tmp_path: Path) -> None:
    script = _turn("So:\n```python\nadd(2, 3)\n```\n") + _turn('```python\nfinal_answer("All done.")\n```')
    run = await run_agent(coding(code_block_tags="markdown"), script, tmp_path)
    assert run.reasoning() == "So:"
    assert run.call("python_interpreter").started.args is None
    assert run.call("python_interpreter").args == {"code": "add(2, 3)"}


async def test_structured_reply_gives_reasoning_and_code(tmp_path: Path) -> None:
    def turn(thought: str, code: str) -> str:
        return _turn(msgspec.json.encode({"thought": thought, "code": code}).decode())

    script = turn("I add.", "add(2, 3)") + turn("I answer.", 'final_answer("All done.")')
    run = await run_agent(coding(use_structured_outputs_internally=True), script, tmp_path)
    assert run.reasoning() == "I add.I answer."
    assert run.call("python_interpreter").started.args is None
    assert [call.args for call in run.all(ToolReady)] == [{"code": "add(2, 3)"}, {"code": 'final_answer("All done.")'}]


async def test_structured_reply_with_tags_around_its_code_is_streamed_without_them(tmp_path: Path) -> None:
    reply = msgspec.json.encode({"thought": "So.", "code": "<code>\nadd(2, 3)\n</code>"}).decode()
    options: dict[str, Any] = {"use_structured_outputs_internally": True}
    done = msgspec.json.encode({"thought": "", "code": 'final_answer("All done.")'}).decode()
    run = await run_agent(coding(**options), _turn(reply) + _turn(done), tmp_path)
    call = run.call("python_interpreter", 0)
    assert (call.started.args, call.args, call.result) == (None, {"code": "add(2, 3)"}, 5)


async def test_structured_reply_that_is_not_json_fails_the_streamed_call(tmp_path: Path) -> None:
    options: dict[str, Any] = {"use_structured_outputs_internally": True}
    done = msgspec.json.encode({"thought": "", "code": 'final_answer("All done.")'}).decode()
    run = await run_agent(coding(**options), _turn('{"thought": "So.", "code": "add(2, 3)') + _turn(done), tmp_path)
    call = run.call("python_interpreter", 0)
    assert call.args == {"code": "add(2, 3)"}
    assert "Error in code parsing" in (call.error or "")
    assert run.answer == "All done."


async def test_managed_agents_that_code_calls_belong_to_their_calls(tmp_path: Path) -> None:
    script = """
- match: job one
  turns: [{steps: [{text: "One.\\n<code>\\nfinal_answer(1)\\n</code>"}]}]
- match: job two
  turns: [{steps: [{text: "Two.\\n<code>\\nfinal_answer(2)\\n</code>"}]}]
- turns:
""" + "".join(f"    {line}\n" for line in writing('helper("job one")\nhelper(task="job two")').splitlines())
    run = await run_agent(leading(coding, coding), script, tmp_path)
    outer = run.call("python_interpreter")
    for number, (name, said) in enumerate([("helper-1", "One."), ("helper-2", "Two.")]):
        started, call = run.agent("helper", number), run.call("helper", number)
        assert (started.agent_id, started.call_id, started.parent_id) == (name, call.call_id, "")
        assert run.reasoning(name) == said
        ended = run.one(AgentFinished, agent_id=name)
        assert outer.started_at < call.started_at < run.at(started) < run.at(ended) < call.ended_at < outer.ended_at
        assert call.args == {"task": f"job {'one' if number == 0 else 'two'}"}


async def test_tools_that_code_calls_have_the_context_of_their_run(tmp_path: Path) -> None:
    @tool
    def whose(question: str) -> str:
        """Say for whom this is.

        Args:
            question: Anything.
        """
        context = current()
        return context.session_id if context else "no session"

    run = await run_agent(coding(whose), writing('whose("this")'), tmp_path, session_id="mine")
    assert run.call("whose").result == "mine"


async def test_image_result_of_code_is_an_artifact(tmp_path: Path) -> None:
    run = await run_agent(coding(odd), writing('picture = odd("image")\npicture'), tmp_path)
    assert [made.call_id for made in run.all(ArtifactMade)] == [
        run.call("odd").call_id,
        run.call("python_interpreter").call_id,
    ]


class Elsewhere(PythonExecutor):
    """An executor other than smolagents' own, of which only the end is observed."""

    def send_tools(self, tools: dict[str, Any]) -> None:
        assert all(type(tool).__module__.startswith(("smolagents", "tests")) for tool in tools.values())

    def send_variables(self, variables: dict[str, Any]) -> None: ...

    def __call__(self, code_action: str) -> CodeOutput:
        final = "final_answer" in code_action
        return CodeOutput(output="All done." if final else 7, logs="" if final else "far away\n", is_final_answer=final)


async def test_output_of_another_executor_is_shown_at_its_end(tmp_path: Path) -> None:
    call = (await run_agent(coding(executor=Elsewhere()), writing("1 + 6"), tmp_path)).call("python_interpreter")
    assert (call.output, call.result) == ("far away\n", 7)


async def test_stop_ends_an_endless_loop_in_code(tmp_path: Path) -> None:
    async with serve_agent(coding(), writing("while True:\n    x = 1"), tmp_path) as server:
        run = await server.run_until(lambda e: isinstance(e, ToolReady))
        await eventually(lambda: not working())
    assert isinstance(run.terminal, RunCancelled)
    assert not any("cannot be interrupted" in str(event) for event in run.events)


async def test_variables_of_code_are_kept_between_turns(tmp_path: Path) -> None:
    script = """
- match: remember
  turns: [{steps: [{text: "<code>\\nkept = 7\\ndef more():\\n    return kept + 1\\nfinal_answer('ok')\\n</code>"}]}]
- match: recall
  turns: [{steps: [{text: "<code>\\nkept = 8\\nfinal_answer(more())\\n</code>"}]}]
"""
    async with serve_agent(coding(max_steps=2), script, tmp_path) as server:
        await server.run("remember", session_id="a")
        assert (await server.run("recall", session_id="a")).answer == 9
        other = await server.run("recall", session_id="b")
    assert "more" in (other.all(StepFinished)[0].error or "")
