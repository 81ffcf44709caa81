"""Unusual results of tools and faults of models in every framework: the run has one end, nothing is left open, and the
next turn works. `checked_run` checks the first two for every run."""

# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false, reportUnknownLambdaType=false
# The frameworks' own types are partly unknown.

import asyncio
import threading
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from langchain.agents import create_agent
from langchain_core.tools import tool as langchain_tool
from langgraph.checkpoint.memory import InMemorySaver
from smolagents import ToolCallingAgent
from smolagents import tool as smolagents_tool

from limelight.events import FinalAnswer, RunFailed, RunFinished
from tests.sources.agno import agno_scenarios
from tests.sources.langgraph import langgraph_scenarios
from tests.sources.live_turn import AgentServer, ModelEndpoint, serve_agent
from tests.sources.smolagents import smolagents_scenarios
from tests.sources.smolagents.smolagents_scenarios import ODD
from tests.support.wait import eventually

pytestmark = pytest.mark.usefixtures("agno_models")


class Framework(NamedTuple):
    """How to make an agent with one tool, and the step of a script that answers."""

    make: Callable[[ModelEndpoint, Any], Any]
    answer: str

    def serve(self, tool: Any, step: str, data: Path) -> AbstractAsyncContextManager[AgentServer]:
        """Serve an agent with this tool. The script for "go" is this step and an answer; for "again" an answer."""
        return serve_agent(lambda endpoint: self.make(endpoint, tool), script(self, step), data)


def langgraph(endpoint: ModelEndpoint, tool: Any) -> Any:
    return create_agent(langgraph_scenarios.model(endpoint), [langchain_tool(tool)])


def agno(endpoint: ModelEndpoint, tool: Any) -> Any:
    return agno_scenarios.plain(endpoint, tools=[tool])


def smolagents(endpoint: ModelEndpoint, tool: Any) -> Any:
    return ToolCallingAgent(tools=[smolagents_tool(tool)], model=smolagents_scenarios.model_at(endpoint))


FRAMEWORKS = {
    "langgraph": Framework(langgraph, "{{text: {}}}"),
    "agno": Framework(agno, "{{text: {}}}"),
    "smolagents": Framework(smolagents, "{{tool_calls: [{{name: final_answer, arguments: {{answer: {}}}}}]}}"),
}


@pytest.fixture(params=FRAMEWORKS)
def framework(request: pytest.FixtureRequest) -> Framework:
    return FRAMEWORKS[request.param]


def odd_result(kind: str) -> Any:
    return ODD[kind.removeprefix("a ")]()


def named(name: str, act: Callable[[str], Any] = odd_result) -> Any:
    """A tool with this name, which calls `act`."""

    def tool(kind: str) -> Any:
        """Act.

        Args:
            kind: What.
        """
        return act(kind)

    tool.__name__ = tool.__qualname__ = name
    return tool


def script(framework: Framework, *steps: str) -> str:
    """A script: for "go" these steps and the answer; for "again" the answer."""
    turns = "".join(f"    - steps: [{step}]\n" for step in (*steps, framework.answer.format("All done.")))
    return f"- match: again\n  turns: [{{steps: [{framework.answer.format('Fine.')}]}}]\n- match: go\n  turns:\n{turns}"


def calling(name: str, kind: str = "none") -> str:
    return f"{{tool_calls: [{{name: {name}, arguments: {{kind: a {kind}}}, id: call_0}}]}}"


async def assert_next_turn_works(server: AgentServer) -> None:
    run = await server.run("again", session_id="a")
    assert isinstance(run.terminal, RunFinished), run.terminal
    assert run.answer == "Fine."


@pytest.mark.parametrize("kind", ODD)
async def test_every_unusual_result_is_in_the_log(kind: str, framework: Framework, tmp_path: Path) -> None:
    """5 MB, bytes, None, a dict that is not JSON, a lone surrogate, objects without a text, an image."""
    async with framework.serve(named("odd"), calling("odd", kind), tmp_path) as server:
        run = await server.run("go", session_id="a")
        assert isinstance(run.terminal, RunFinished | RunFailed)
        assert not isinstance(run.terminal, RunFailed) or run.terminal.message
        call = run.call("odd")
        assert call.error is None or kind == "unprintable"
        assert kind != "huge" or call.finished.size >= 5_000_000
        await assert_next_turn_works(server)


async def test_result_is_the_returned_text(framework: Framework, tmp_path: Path) -> None:
    """Lines, quotes and tags are kept, and words like "error" and "failed" do not make it an error."""
    text = "No error, no exception, nothing failed: it's 'fine'.\n\n \"Two\" <b>lines</b> &amp; {more}\nTraceback: none"
    async with framework.serve(named("quote", lambda _: text), calling("quote"), tmp_path) as server:
        call = (await server.run("go", session_id="a")).call("quote")
    assert (call.result, call.error) == (text, None)


async def test_reply_is_shown_completely_and_once(framework: Framework, tmp_path: Path) -> None:
    """Long reasoning before a call is not cut, and neither it nor the answer is repeated at the end of the run."""
    thought = " ".join(f"word{n}" for n in range(500))
    reply = f"{{text: {thought}}}, {calling('odd', 'object')}"
    async with framework.serve(named("odd"), reply, tmp_path) as server:
        run = await server.run("go", session_id="a")
    said = run.text() + run.reasoning()
    assert said.count(thought) == 1 and said.count("word250 ") == 1
    assert run.answer == "All done."
    assert said.count("All done.") == (run.one(FinalAnswer).message_id is not None)


async def test_blocking_tool_does_not_block_other_runs(framework: Framework, tmp_path: Path) -> None:
    """While one run sleeps in a sync tool, another streams to its end, and the server answers at once."""
    let_go, sleeping = threading.Event(), threading.Event()

    def block(_: str) -> str:
        sleeping.set()
        let_go.wait(60)
        return "rested"

    async with framework.serve(named("block", block), calling("block"), tmp_path) as server:
        sleeper = asyncio.create_task(server.run("go", session_id="b"))
        try:
            await eventually(sleeping.is_set)
            await assert_next_turn_works(server)
            assert (await server.served.http.get("/health")).status_code == 200
            assert not sleeper.done()
        finally:
            let_go.set()
        assert isinstance((await sleeper).terminal, RunFinished)


async def test_tool_with_a_name_of_200_characters_works(framework: Framework, tmp_path: Path) -> None:
    name = "n" * 200
    async with framework.serve(named(name), calling(name), tmp_path) as server:
        run = await server.run("go", session_id="a")
        assert isinstance(run.terminal, RunFinished), run.terminal
        assert run.call(name).error is None
        await assert_next_turn_works(server)


FAULTS = {
    "500": "{error: {status: 500, message: out of order}}",
    "cut": "{text: It was a dark and}, {cut: true}",
    "cut in a call": "{tool_calls: [{name: odd, arguments: {kind: none}}]}, {cut: true}",
    "malformed": """{tool_calls: [{name: odd, raw: '{"kind": '}]}""",
    "not an object": """{tool_calls: [{name: odd, raw: '[1, 2]'}]}""",
}


@pytest.mark.parametrize("fault", FAULTS)
async def test_malformed_reply_of_a_model_ends_in_a_terminal_event(
    fault: str, framework: Framework, tmp_path: Path
) -> None:
    """HTTP 500, a stream that is cut in a sentence or in a call, arguments that are not JSON or not an object."""
    async with framework.serve(named("odd"), FAULTS[fault], tmp_path) as server:
        run = await server.run("go", session_id="a")
        assert isinstance(run.terminal, RunFinished | RunFailed)
        if fault in ("500", "cut", "cut in a call"):
            assert isinstance(run.terminal, RunFailed)
        assert not isinstance(run.terminal, RunFailed) or run.terminal.message
        await assert_next_turn_works(server)


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
async def test_malformed_history_of_a_client_is_accepted(past: str, framework: Framework, tmp_path: Path) -> None:
    messages = [{"role": "user", "content": "a"}, *PASTS[past], {"role": "user", "content": "again"}]
    async with framework.serve(named("odd"), calling("odd"), tmp_path) as server:
        run = await server.run(messages=messages, session_id="a")
        assert isinstance(run.terminal, RunFinished), run.terminal
        await assert_next_turn_works(server)


@pytest.mark.parametrize("fault", ["malformed", "not an object"])
async def test_malformed_reply_in_the_log_is_accepted_as_history(fault: str, tmp_path: Path) -> None:
    """A graph with its state in memory gets the history from the log after a restart, malformed calls included."""
    for question in ("go", "again"):
        async with serve_agent(
            lambda endpoint: create_agent(
                langgraph_scenarios.model(endpoint), [langchain_tool(named("odd"))], checkpointer=InMemorySaver()
            ),
            script(FRAMEWORKS["langgraph"], FAULTS[fault]),
            tmp_path,
        ) as server:
            run = await server.run(question, session_id="a")
            assert isinstance(run.terminal, RunFinished), run.terminal
    assert run.answer == "Fine."
