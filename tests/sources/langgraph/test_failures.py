# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false, reportUnknownVariableType=false
"""LangGraph: failed and stopped runs, and the turn after them."""

from pathlib import Path
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain.agents.middleware import ModelRetryMiddleware, ToolRetryMiddleware
from langchain_core.tools import tool

from limelight.events import (
    AgentFinished,
    AgentStarted,
    AnyEvent,
    RunCancelled,
    RunFailed,
    RunFinished,
    TextDelta,
    TextFinished,
    ToolReady,
    ToolStarted,
)
from tests.sources.langgraph import graphs as graphs
from tests.sources.langgraph.langgraph_scenarios import answering, deep, model, plain
from tests.sources.live_turn import AgentServer, ModelEndpoint, run_agent, serve_agent
from tests.sources.recorded_requests import Requests, conversation_in
from tests.support.server import offer, serving

GO_ON = "- match: go on\n  turns: [{steps: [{text: I see.}]}]\n"


def begin(*turns: str) -> str:
    """A script for the question "go"; the answer to "go on" is "I see."."""
    return GO_ON + "- turns:\n" + "\n".join(f"    {line}" for line in answering(*turns).split("\n"))


def helping(first: str, second: str = "") -> str:
    """One or two sub-agents, and the first steps of each."""
    calls = [f'{{name: task, arguments: {{description: "help: {n}", subagent_type: helper}}}}' for n in ("one", "two")]
    made = ", ".join(calls if second else calls[:1])
    helpers = "".join(
        f'- match: "help: {n}"\n  turns: [{{steps: [{steps}]}}, {{steps: [{{text: Done.}}]}}]\n'
        for n, steps in (("one", first), ("two", second))
        if steps
    )
    return helpers + begin(f"- steps: [{{tool_calls: [{made}]}}]")


async def assert_next_turn_works(server: AgentServer) -> None:
    run = await server.run("go on", session_id="a")
    assert isinstance(run.terminal, RunFinished), run.terminal
    assert run.answer == "I see."


FAIL = "{tool_calls: [{name: fail, arguments: {reason: no such file}}]}"


async def test_tool_that_raises_fails_the_run_with_its_error(tmp_path: Path) -> None:
    both = "{name: fail, arguments: {reason: no such file}}, {name: slow, arguments: {name: x, seconds: 30}}"
    async with serve_agent(plain, begin(f"- steps: [{{tool_calls: [{both}]}}]"), tmp_path) as server:
        run = await server.run(session_id="a")
        assert isinstance(run.terminal, RunFailed)
        assert run.terminal.message == "ValueError: no such file"
        fail, slow = run.call("fail").finished, run.call("slow").finished
        assert (fail.error, fail.outcome) == ("no such file", "")
        assert (slow.error, slow.outcome) == ("cut off: ValueError: no such file", "stopped")
        await assert_next_turn_works(server)


async def test_graph_that_handles_tool_errors_continues(tmp_path: Path) -> None:
    def make(endpoint: ModelEndpoint) -> Any:
        return graphs.with_tool_node(endpoint, handle_tool_errors=True)

    async with serve_agent(make, begin(f"- steps: [{FAIL}]"), tmp_path) as server:
        run = await server.run(session_id="a")
        assert isinstance(run.terminal, RunFinished), run.terminal
        assert "no such file" in (run.call("fail").error or "")
        assert run.answer == "All done."


async def test_retried_tool_is_one_call(tmp_path: Path) -> None:
    tries: list[int] = []

    @tool
    def flaky() -> str:
        """Fail twice."""
        tries.append(1)
        if len(tries) < 3:
            raise ValueError("not yet")
        return "at last"

    def make(endpoint: ModelEndpoint) -> Any:
        return create_agent(
            model(endpoint), [flaky], middleware=[ToolRetryMiddleware(max_retries=2, initial_delay=0, jitter=False)]
        )

    run = await run_agent(make, begin("- steps: [{tool_calls: [{name: flaky, arguments: {}}]}]"), tmp_path)
    assert isinstance(run.terminal, RunFinished), run.terminal
    assert len(tries) == 3
    assert len(run.all(ToolStarted)) == 1
    assert (run.call("flaky").result, run.call("flaky").error) == ("at last", None)


async def test_retried_model_streams_its_reply_again(tmp_path: Path) -> None:
    """A script cannot fail only once: here all attempts fail, and each has streamed a piece of text."""

    def make(endpoint: ModelEndpoint) -> Any:
        retrying = ModelRetryMiddleware(max_retries=1, initial_delay=0, jitter=False, on_failure="continue")
        return create_agent(model(endpoint), [], middleware=[retrying])

    run = await run_agent(make, "- steps: [{text: All is}, {cut: true}]", tmp_path)
    assert isinstance(run.terminal, RunFinished), run.terminal
    messages = {e.message_id for e in run.all(TextDelta)}
    assert len(messages) == len(run.all(TextFinished)) == 3
    assert "failed after 2 attempts" in str(run.answer)


# Sub-agents


async def test_tool_of_a_sub_agent_that_raises_closes_everything_around_it(tmp_path: Path) -> None:
    async with serve_agent(deep, helping(FAIL), tmp_path) as server:
        run = await server.run(session_id="a")
        assert isinstance(run.terminal, RunFailed)
        assert "no such file" in run.terminal.message
        assert run.call("fail").error == run.call("task").error == "no such file"
        ended = run.one(AgentFinished)
        assert "no such file" in (ended.error or "")
        assert run.call("fail").ended_at < run.at(ended) < run.call("task").ended_at
        await assert_next_turn_works(server)


async def test_two_sub_agents_that_fail_end_with_their_errors(tmp_path: Path) -> None:
    async with serve_agent(deep, helping(FAIL, FAIL), tmp_path) as server:
        run = await server.run(session_id="a")
        assert isinstance(run.terminal, RunFailed)
        assert all("no such file" in (run.call("task", n).error or "") for n in (0, 1))
        assert all(e.error for e in run.all(AgentFinished))
        await assert_next_turn_works(server)


@pytest.mark.parametrize("fault", ["{error: {status: 500, message: out of order}}", "{text: half}, {cut: true}"])
async def test_model_error_of_a_sub_agent_closes_the_sub_agent(tmp_path: Path, fault: str) -> None:
    async with serve_agent(deep, helping(fault), tmp_path) as server:
        run = await server.run(session_id="a")
        assert isinstance(run.terminal, RunFailed)
        assert run.one(AgentFinished).error
        assert run.call("task").error
        await assert_next_turn_works(server)


# Limits


async def test_step_limit_ends_the_run(tmp_path: Path, requests: Requests) -> None:
    adding = "- steps: [{text: Adding.}, {tool_calls: [{name: add, arguments: {a: 2, b: 3}}]}]"
    async with serve_agent(plain, begin(*[adding] * 5), tmp_path) as server:
        agent = offer(plain(server.endpoint), "limited", max_steps=2)
        async with serving(agents=[agent], data=tmp_path / "limited") as served:
            limited = AgentServer(served, server.endpoint)
            run = await limited.run(session_id="a")
            assert isinstance(run.terminal, RunFinished)
            assert run.terminal.code == "max_steps"
            assert run.answer == "Adding."
            assert len(run.all(ToolStarted)) == 2
            await assert_next_turn_works(limited)
    assert len(requests) == 3


# Stop


def text_seen(event: AnyEvent) -> bool:
    return isinstance(event, TextDelta)


def tool_runs(event: AnyEvent) -> bool:
    return isinstance(event, ToolReady)


def helper_runs(event: AnyEvent) -> bool:
    return isinstance(event, AgentStarted)


def helper_talks(event: AnyEvent) -> bool:
    return isinstance(event, TextDelta) and event.agent_id != ""


TALK = "{delay: 0.05}, {text: one two three four five six seven eight nine ten eleven twelve thirteen fourteen}"
NAP = "{tool_calls: [{name: nap, arguments: {seconds: 3}}]}"
SLOW = "{tool_calls: [{name: slow, arguments: {name: x, seconds: 30}}]}"


@pytest.mark.parametrize(
    ("make", "script", "stop_at", "left"),
    [
        (plain, begin(f"- steps: [{TALK}]"), text_seen, ["user"]),
        (plain, begin(f"- steps: [{SLOW}]"), tool_runs, ["user", "assistant", "tool"]),
        (plain, begin(f"- steps: [{NAP}]"), tool_runs, ["user", "assistant", "tool"]),
        (deep, helping(SLOW), helper_runs, ["user", "assistant", "tool"]),
        (deep, helping(TALK, SLOW), helper_talks, ["user", "assistant", "tool", "tool"]),
    ],
)
async def test_state_after_a_stop_has_a_result_for_every_call(
    tmp_path: Path, requests: Requests, make: Any, script: str, stop_at: Any, left: list[str]
) -> None:
    async with serve_agent(make, script, tmp_path) as server:
        stopped = await server.run_until(stop_at, session_id="a")
        assert isinstance(stopped.terminal, RunCancelled)
        await assert_next_turn_works(server)
    assert [role for role, _ in conversation_in(requests[-1])] == [*left, "user"]
