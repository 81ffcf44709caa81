"""Whatever a tool returns or a model does, with every framework: the run has one clear end, nothing is left open, and
the next turn works. `played` checks the first two of every run."""

# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false, reportUnknownLambdaType=false
# The frameworks' own types are partly unknown.

import asyncio
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from langchain.agents import create_agent
from langchain_core.tools import tool as langchain_tool
from langgraph.checkpoint.memory import InMemorySaver
from smolagents import ToolCallingAgent
from smolagents import tool as smolagents_tool

from limelight.events import FinalAnswer, RunFailed, RunFinished, ToolStarted
from tests.sources.agno import agno_scenarios
from tests.sources.langgraph import langgraph_scenarios
from tests.sources.live_turn import Stage, Theatre, theatre
from tests.sources.smolagents import smolagents_scenarios
from tests.sources.smolagents.smolagents_scenarios import ODD
from tests.support.wait import eventually

pytestmark = pytest.mark.usefixtures("agno_models")


class Framework(NamedTuple):
    """How an agent with one tool is made, and how its model answers."""

    make: Callable[[Stage, Any], Any]
    answer: str


def langgraph(stage: Stage, tool: Any) -> Any:
    return create_agent(langgraph_scenarios.model(stage), [langchain_tool(tool)])


def agno(stage: Stage, tool: Any) -> Any:
    return agno_scenarios.plain(stage, tools=[tool])


def smolagents(stage: Stage, tool: Any) -> Any:
    return ToolCallingAgent(tools=[smolagents_tool(tool)], model=smolagents_scenarios.model_at(stage))


FRAMEWORKS = {
    "langgraph": Framework(langgraph, "{{text: {}}}"),
    "agno": Framework(agno, "{{text: {}}}"),
    "smolagents": Framework(smolagents, "{{tool_calls: [{{name: final_answer, arguments: {{answer: {}}}}}]}}"),
}


@pytest.fixture(params=FRAMEWORKS)
def framework(request: pytest.FixtureRequest) -> Framework:
    return FRAMEWORKS[request.param]


def named(name: str) -> Any:
    """A tool with this name, which returns what is asked for."""

    def odd(kind: str) -> Any:
        """Return something odd.

        Args:
            kind: What.
        """
        return ODD[kind.removeprefix("a ")]()

    odd.__name__ = odd.__qualname__ = name
    return odd


def script(framework: Framework, *steps: str) -> str:
    """At "go" the model does this and then answers; at "again" it answers at once."""
    turns = "".join(f"    - steps: [{step}]\n" for step in (*steps, framework.answer.format("All done.")))
    return f"- match: again\n  turns: [{{steps: [{framework.answer.format('Fine.')}]}}]\n- match: go\n  turns:\n{turns}"


def calling(name: str, kind: str = "none", times: int = 1) -> str:
    made = ", ".join(f"{{name: {name}, arguments: {{kind: a {kind}}}, id: call_{n}}}" for n in range(times))
    return f"{{tool_calls: [{made}]}}"


async def goes_on(stage: Theatre) -> None:
    run = await stage.play("again", session_id="a")
    assert isinstance(run.terminal, RunFinished), run.terminal
    assert run.answer == "Fine."


@pytest.mark.parametrize("kind", ODD)
async def test_any_result_of_a_tool(kind: str, framework: Framework, tmp_path: Path) -> None:
    """5 MB, bytes, None, a dict that is no JSON, half a character, objects that cannot even be printed, a picture."""
    made = named("odd")
    async with theatre(
        lambda stage: framework.make(stage, made), script(framework, calling("odd", kind)), tmp_path
    ) as stage:
        run = await stage.play("go", session_id="a")
        assert isinstance(run.terminal, RunFinished | RunFailed)
        assert not isinstance(run.terminal, RunFailed) or run.terminal.message
        call = run.call("odd")
        assert call.error is None or kind == "unprintable"
        assert kind != "huge" or call.finished.size >= 5_000_000
        await goes_on(stage)


async def test_a_result_is_the_text_that_the_tool_returned(framework: Framework, tmp_path: Path) -> None:
    """With its lines, quotes and tags; and words like "error" and "failed" in it make it no error."""

    def tell(kind: str) -> str:
        """Tell.

        Args:
            kind: What.
        """
        return TOLD

    async with theatre(
        lambda stage: framework.make(stage, tell), script(framework, calling("tell")), tmp_path
    ) as stage:
        run = await stage.play("go", session_id="a")
    assert (run.call("tell").result, run.call("tell").error) == (TOLD, None)


TOLD = "No error, no exception, nothing failed: it's 'fine'.\n\n  \"Two\" <b>lines</b> &amp; {more}\nTraceback: none"


async def test_what_a_model_says_is_whole_and_said_once(framework: Framework, tmp_path: Path) -> None:
    """A long thought before a call is not cut, and neither it nor the answer comes again at the end of the run."""
    thought = " ".join(f"word{n}" for n in range(500))
    told = script(framework, f"{{text: {thought}}}, {calling('odd', 'object')}")
    async with theatre(lambda stage: framework.make(stage, named("odd")), told, tmp_path) as stage:
        run = await stage.play("go", session_id="a")
    said = run.text() + run.reasoning()
    assert said.count(thought) == 1 and said.count("word250 ") == 1
    assert run.answer == "All done."
    assert said.count("All done.") == (run.one(FinalAnswer).message_id is not None)


async def test_a_tool_that_blocks_holds_nobody_else_up(framework: Framework, tmp_path: Path) -> None:
    """While one run sleeps in an ordinary tool, another streams to its end, and the server answers at once."""
    let_go, sleeping = threading.Event(), threading.Event()

    def block(kind: str) -> str:
        """Block.

        Args:
            kind: What.
        """
        sleeping.set()
        let_go.wait(60)
        return "rested"

    async with theatre(
        lambda stage: framework.make(stage, block), script(framework, calling("block")), tmp_path
    ) as stage:
        sleeper = asyncio.create_task(stage.play("go", session_id="b"))
        try:
            await eventually(sleeping.is_set)
            await goes_on(stage)
            assert (await stage.served.http.get("/health")).status_code == 200
            assert not sleeper.done()
        finally:
            let_go.set()
        assert isinstance((await sleeper).terminal, RunFinished)


async def test_a_tool_with_a_name_of_two_hundred_characters(framework: Framework, tmp_path: Path) -> None:
    made, name = named("n" * 200), "n" * 200
    async with theatre(lambda stage: framework.make(stage, made), script(framework, calling(name)), tmp_path) as stage:
        run = await stage.play("go", session_id="a")
        assert isinstance(run.terminal, RunFinished), run.terminal
        assert run.call(name).error is None
        await goes_on(stage)


async def test_fifty_calls_at_once(framework: Framework, tmp_path: Path) -> None:
    made = named("odd")
    told = script(framework, calling("odd", "object", times=50))
    async with theatre(lambda stage: framework.make(stage, made), told, tmp_path) as stage:
        run = await stage.play("go", session_id="a")
        assert isinstance(run.terminal, RunFinished), run.terminal
        assert len(run.all(ToolStarted)) == 50
        assert {run.call("odd", n).result for n in range(50)} == {"<odd thing>"}
        await goes_on(stage)


FAULTS = {
    "500": "{error: {status: 500, message: out of order}}",
    "cut": "{text: It was a dark and}, {cut: true}",
    "cut in a call": "{tool_calls: [{name: odd, arguments: {kind: none}}]}, {cut: true}",
    "malformed": """{tool_calls: [{name: odd, raw: '{"kind": '}]}""",
    "not an object": """{tool_calls: [{name: odd, raw: '[1, 2]'}]}""",
}


@pytest.mark.parametrize("fault", FAULTS)
async def test_any_fault_of_a_model(fault: str, framework: Framework, tmp_path: Path) -> None:
    """HTTP 500, a stream that is cut in a sentence or in a call, arguments that are no JSON or no object."""
    made = named("odd")
    async with theatre(lambda stage: framework.make(stage, made), script(framework, FAULTS[fault]), tmp_path) as stage:
        run = await stage.play("go", session_id="a")
        assert isinstance(run.terminal, RunFinished | RunFailed)
        if fault in ("500", "cut", "cut in a call"):
            assert isinstance(run.terminal, RunFailed)
        assert not isinstance(run.terminal, RunFailed) or run.terminal.message
        await goes_on(stage)


def _called(*calls: Any) -> list[dict[str, Any]]:
    result = {"role": "tool", "tool_call_id": "c1", "content": "r"}
    return [{"role": "assistant", "content": "x", "tool_calls": list(calls)}, result]


def _with_arguments(arguments: Any) -> dict[str, Any]:
    return {"id": "c1", "type": "function", "function": {"name": "odd", "arguments": arguments}}


PASTS: dict[str, list[dict[str, Any]]] = {
    "no arguments": _called(_with_arguments("")),
    "malformed": _called(_with_arguments('{"kind": ')),
    "not an object": _called(_with_arguments("[1]")),
    "an object": _called(_with_arguments({"kind": "x"})),
    "no id": _called({"type": "function", "function": {"name": "odd", "arguments": "{}"}}),
    "no calls": _called("foo", 3),
}


@pytest.mark.parametrize("past", PASTS)
async def test_any_past_that_a_client_tells(past: str, framework: Framework, tmp_path: Path) -> None:
    messages = [{"role": "user", "content": "a"}, *PASTS[past], {"role": "user", "content": "again"}]
    async with theatre(
        lambda stage: framework.make(stage, named("odd")), script(framework, calling("odd")), tmp_path
    ) as stage:
        run = await stage.play(messages=messages, session_id="a")
        assert isinstance(run.terminal, RunFinished), run.terminal
        await goes_on(stage)


@pytest.mark.parametrize("fault", ["malformed", "not an object"])
async def test_a_fault_of_a_model_that_only_the_log_remembers(fault: str, tmp_path: Path) -> None:
    """A graph that keeps its state in memory is told its past from the log after a restart, odd calls and all."""
    for question in ("go", "again"):
        async with theatre(
            lambda stage: create_agent(
                langgraph_scenarios.model(stage), [langchain_tool(named("odd"))], checkpointer=InMemorySaver()
            ),
            script(FRAMEWORKS["langgraph"], FAULTS[fault]),
            tmp_path,
        ) as stage:
            run = await stage.play(question, session_id="a")
            assert isinstance(run.terminal, RunFinished), run.terminal
    assert run.answer == "Fine."
