# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false, reportUnknownVariableType=false
"""LangGraph: what fails, where it is shown, and that the next turn works. And what is stopped, likewise."""

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
from tests.sources.live_turn import Stage, Theatre, theatre
from tests.sources.recorded_requests import recorded, said
from tests.support.server import offer, serving

GO_ON = "- match: go on\n  turns: [{steps: [{text: I see.}]}]\n"


def begin(*turns: str) -> str:
    """A script that is played at "go"; "go on" is answered with "I see."."""
    return GO_ON + "- turns:\n" + "\n".join(f"    {line}" for line in answering(*turns).split("\n"))


def helping(first: str, second: str = "") -> str:
    """One or two helpers, and the steps with which each begins."""
    calls = [f'{{name: task, arguments: {{description: "help: {n}", subagent_type: helper}}}}' for n in ("one", "two")]
    made = ", ".join(calls if second else calls[:1])
    told = "".join(
        f'- match: "help: {n}"\n  turns: [{{steps: [{steps}]}}, {{steps: [{{text: Done.}}]}}]\n'
        for n, steps in (("one", first), ("two", second))
        if steps
    )
    return told + begin(f"- steps: [{{tool_calls: [{made}]}}]")


async def goes_on(stage: Theatre) -> None:
    run = await stage.play("go on", session_id="a")
    assert isinstance(run.terminal, RunFinished), run.terminal
    assert run.answer == "I see."


FAIL = "{tool_calls: [{name: fail, arguments: {reason: no such file}}]}"


async def test_a_tool_that_raises_ends_the_run_with_its_own_error(tmp_path: Path) -> None:
    both = "{name: fail, arguments: {reason: no such file}}, {name: slow, arguments: {name: x, seconds: 30}}"
    async with theatre(plain, begin(f"- steps: [{{tool_calls: [{both}]}}]"), tmp_path) as stage:
        run = await stage.play(session_id="a")
        assert isinstance(run.terminal, RunFailed)
        assert run.terminal.message == "ValueError: no such file"
        assert run.call("fail").error == "no such file"
        assert run.call("slow").error == "cut off: ValueError: no such file"
        await goes_on(stage)


async def test_a_graph_that_handles_errors_goes_on(tmp_path: Path) -> None:
    def make(stage: Stage) -> Any:
        return graphs.with_tool_node(stage, handle_tool_errors=True)

    async with theatre(make, begin(f"- steps: [{FAIL}]"), tmp_path) as stage:
        run = await stage.play(session_id="a")
        assert isinstance(run.terminal, RunFinished), run.terminal
        assert "no such file" in (run.call("fail").error or "")
        assert run.answer == "All done."


async def test_a_tool_that_is_tried_again_is_one_call(tmp_path: Path) -> None:
    tries: list[int] = []

    @tool
    def flaky() -> str:
        """Fail twice."""
        tries.append(1)
        if len(tries) < 3:
            raise ValueError("not yet")
        return "at last"

    def make(stage: Stage) -> Any:
        return create_agent(
            model(stage), [flaky], middleware=[ToolRetryMiddleware(max_retries=2, initial_delay=0, jitter=False)]
        )

    async with theatre(make, begin("- steps: [{tool_calls: [{name: flaky, arguments: {}}]}]"), tmp_path) as stage:
        run = await stage.play()
    assert isinstance(run.terminal, RunFinished), run.terminal
    assert len(tries) == 3
    assert len(run.all(ToolStarted)) == 1
    assert (run.call("flaky").result, run.call("flaky").error) == ("at last", None)


async def test_a_model_that_is_asked_again_says_it_again(tmp_path: Path) -> None:
    """A script cannot fail once only: here all tries fail, and each has left a piece of text."""

    def make(stage: Stage) -> Any:
        retrying = ModelRetryMiddleware(max_retries=1, initial_delay=0, jitter=False, on_failure="continue")
        return create_agent(model(stage), [], middleware=[retrying])

    async with theatre(make, "- steps: [{text: All is}, {cut: true}]", tmp_path) as stage:
        run = await stage.play()
    assert isinstance(run.terminal, RunFinished), run.terminal
    messages = {e.message_id for e in run.all(TextDelta)}
    assert len(messages) == len(run.all(TextFinished)) == 3
    assert "failed after 2 attempts" in str(run.answer)


# Helpers


async def test_a_helpers_tool_that_raises_closes_all_around_it(tmp_path: Path) -> None:
    async with theatre(deep, helping(FAIL), tmp_path) as stage:
        run = await stage.play(session_id="a")
        assert isinstance(run.terminal, RunFailed)
        assert "no such file" in run.terminal.message
        assert run.call("fail").error == run.call("task").error == "no such file"
        ended = run.one(AgentFinished)
        assert "no such file" in (ended.error or "")
        assert run.call("fail").ended_at < run.at(ended) < run.call("task").ended_at
        await goes_on(stage)


async def test_two_helpers_that_fail(tmp_path: Path) -> None:
    async with theatre(deep, helping(FAIL, FAIL), tmp_path) as stage:
        run = await stage.play(session_id="a")
        assert isinstance(run.terminal, RunFailed)
        assert all("no such file" in (run.call("task", n).error or "") for n in (0, 1))
        assert all(e.error for e in run.all(AgentFinished))
        await goes_on(stage)


@pytest.mark.parametrize("fault", ["{error: {status: 500, message: out of order}}", "{text: half}, {cut: true}"])
async def test_a_helpers_model_that_fails(tmp_path: Path, fault: str) -> None:
    async with theatre(deep, helping(fault), tmp_path) as stage:
        run = await stage.play(session_id="a")
        assert isinstance(run.terminal, RunFailed)
        assert run.one(AgentFinished).error
        assert run.call("task").error
        await goes_on(stage)


# Limits


async def test_no_more_rounds_than_are_allowed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    requests = recorded(monkeypatch)
    adding = "- steps: [{text: Adding.}, {tool_calls: [{name: add, arguments: {a: 2, b: 3}}]}]"
    async with theatre(plain, begin(*[adding] * 5), tmp_path) as stage:
        agent = offer(plain(stage.stage), "limited", max_steps=2)
        async with serving(agents=[agent], data=tmp_path / "limited") as served:
            limited = Theatre(served, stage.stage)
            run = await limited.play(session_id="a")
            assert isinstance(run.terminal, RunFinished)
            assert run.terminal.code == "max_steps"
            assert run.answer == "Adding."
            assert len(run.all(ToolStarted)) == 2
            await goes_on(limited)
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
SLOW = "{tool_calls: [{name: slow, arguments: {name: x, seconds: 30}}]}"


@pytest.mark.parametrize(
    ("make", "script", "stop_at", "left"),
    [
        (plain, begin(f"- steps: [{TALK}]"), text_seen, ["user"]),
        (plain, begin(f"- steps: [{SLOW}]"), tool_runs, ["user", "assistant", "tool"]),
        (deep, helping(SLOW), helper_runs, ["user", "assistant", "tool"]),
        (deep, helping(TALK, SLOW), helper_talks, ["user", "assistant", "tool", "tool"]),
    ],
)
async def test_what_is_kept_after_a_stop(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, make: Any, script: str, stop_at: Any, left: list[str]
) -> None:
    requests = recorded(monkeypatch)
    async with theatre(make, script, tmp_path) as stage:
        stopped = await stage.play_until(stop_at, session_id="a")
        assert isinstance(stopped.terminal, RunCancelled)
        await goes_on(stage)
    assert [role for role, _ in said(requests[-1])] == [*left, "user"]
