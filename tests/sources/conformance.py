"""What every source passes: scenarios, the same for all frameworks, played by real agents against the understudy.

A framework's test file gives a Case for each scenario: how the agent is made and what its model says. What the run must
then look like stands here. A scenario that the framework cannot play is named by its source's LACKS; naming one that it
can play fails.

The casts agree on names: the tools are `add(a, b)` (the sum, as a number or text), `slow(name, seconds)` ("NAME is
done"), `nap(seconds)` (an ordinary function, which says "napping" and blocks), `fail(reason)` (raises
ValueError(reason)), `big(size)` (that many x), `danger(path)` (asks first, then "PATH is gone"), `odd(kind)` (see
`ODD`); the sub-agent is `helper`. Every script ends with the answer "All done." unless the scenario says otherwise.
"""

from collections.abc import Callable
from typing import Any

import msgspec

from limelight.events import (
    AgentFinished,
    AnyEvent,
    ApprovalRequested,
    ApprovalResolved,
    FinalAnswer,
    Plan,
    RunCancelled,
    RunFailed,
    RunFinished,
    Status,
    StepFinished,
    StepStarted,
    TextDelta,
    ToolOutputDelta,
    ToolReady,
    ToolStarted,
    Usage,
)
from limelight.sources.base import Feature
from tests.sources.live_turn import FinishedRun, ModelEndpoint

ANSWER = "All done."


class Case(msgspec.Struct, frozen=True):
    """One framework's agent and script for a scenario."""

    make: Callable[[ModelEndpoint], object]
    script: str


class Scenario(msgspec.Struct, frozen=True):
    """A scenario. `feature` is what a framework must have for it; `expect` checks the run. `stop_at` selects the event
    at which the run is stopped, and `decide` answers requests for approval."""

    expect: Callable[[FinishedRun], None]
    feature: Feature | None = None
    golden: bool = True
    """Whether the events always come in the same order."""
    stop_at: Callable[[AnyEvent], bool] | None = None
    decide: Callable[[ApprovalRequested], dict[str, Any]] | None = None


def finished(run: FinishedRun) -> None:
    assert isinstance(run.terminal, RunFinished), run.terminal
    assert ANSWER in str(run.answer)


def text(run: FinishedRun) -> None:
    """Two sentences, token by token; the answer names the message that was streamed, or was not streamed."""
    finished(run)
    answer = run.one(FinalAnswer)
    if answer.message_id is not None:
        said = "".join(e.text for e in run.all(TextDelta, message_id=answer.message_id))
        assert said == answer.content == run.text()  # an answer is said once
        assert len(run.all(TextDelta, message_id=answer.message_id)) > 1
    else:
        assert ANSWER not in run.text()


def reasoning(run: FinishedRun) -> None:
    """The model thinks "Let me think." before it answers."""
    finished(run)
    assert "Let me think." in run.reasoning()
    assert "Let me think." not in run.text()


def one_tool(run: FinishedRun) -> None:
    """add(2, 3)."""
    finished(run)
    call = run.call("add")
    assert call.args == {"a": 2, "b": 3}
    assert str(call.result) == "5"
    assert call.error is None
    assert call.finished.duration_ms is not None
    assert call.started_at < call.ended_at


def argument_deltas(run: FinishedRun) -> None:
    """The same; the arguments were streamed."""
    one_tool(run)
    call = run.call("add")
    assert call.started.args is None
    assert msgspec.json.decode(call.args_text) == {"a": 2, "b": 3}


def parallel_tools(run: FinishedRun) -> None:
    """slow("first", 0.4) and slow("second", 0.05) in one reply: both run at once, as two calls."""
    finished(run)
    first, second = run.call("slow", 0), run.call("slow", 1)
    if first.args["name"] != "first":
        first, second = second, first
    assert (first.args["name"], second.args["name"]) == ("first", "second")
    assert (first.result, second.result) == ("first is done", "second is done")
    assert max(first.started_at, second.started_at) < min(first.ended_at, second.ended_at)
    assert (first.finished.duration_ms or 0) > (second.finished.duration_ms or 0)


def tool_error(run: FinishedRun) -> None:
    """fail("no such file"), after which the agent continues or ends, depending on its framework."""
    call = run.call("fail")
    assert call.args == {"reason": "no such file"}
    assert "no such file" in (call.error or "")
    assert str(call.result).startswith("Error")
    assert isinstance(run.terminal, RunFinished | RunFailed)


def malformed_args(run: FinishedRun) -> None:
    """The model sends `{"a": 2, "b": ` for add. Nothing hangs, and the run ends properly."""
    assert isinstance(run.terminal, RunFinished | RunFailed)


def unknown_tool(run: FinishedRun) -> None:
    """The model calls `nothing_like_it`, which does not exist."""
    assert isinstance(run.terminal, RunFinished | RunFailed)


def sub_agent(run: FinishedRun) -> None:
    """The agent gives a task to `helper`, who calls add(2, 3) and reports "The sum is five."."""
    finished(run)
    started = run.agent("helper")
    assert started.agent_id and started.parent_id == ""
    spawning = [call for call in run.all(type(run.call("add").started)) if call.call_id == started.call_id]
    assert len(spawning) == 1 and spawning[0].agent_id == ""
    call = run.call("add")
    assert call.started.agent_id == started.agent_id
    assert str(call.result) == "5"
    ended = run.one(AgentFinished, agent_id=started.agent_id)
    assert ended.error is None
    assert run.at(started) < call.started_at < call.ended_at < run.at(ended)
    assert "The sum is five." not in run.text()


def parallel_sub_agents(run: FinishedRun) -> None:
    """Two helpers at once: the first calls slow("first", 2), the second slow("second", 0.05) and is done earlier."""
    finished(run)
    first = next(c for c in (run.call("slow", 0), run.call("slow", 1)) if c.args["name"] == "first")
    second = next(c for c in (run.call("slow", 0), run.call("slow", 1)) if c.args["name"] == "second")
    assert first.started.agent_id != second.started.agent_id
    ends = [run.one(AgentFinished, agent_id=c.started.agent_id) for c in (first, second)]
    assert run.at(ends[1]) < run.at(ends[0])
    assert max(first.started_at, second.started_at) < min(first.ended_at, second.ended_at)
    assert run.agent("helper", 0).call_id != run.agent("helper", 1).call_id


def plan(run: FinishedRun) -> None:
    """A plan, and an update of it."""
    finished(run)
    plans = run.all(Plan)
    assert len(plans) >= 2
    assert [p.update for p in plans] == [False, *[True] * (len(plans) - 1)]
    assert all(p.text or p.items for p in plans)


def steps(run: FinishedRun) -> None:
    """add(2, 3) and an answer: two numbered steps, each with its usage."""
    finished(run)
    begun, ended = run.all(StepStarted, agent_id=""), run.all(StepFinished, agent_id="")
    assert [s.number for s in begun] == list(range(1, len(begun) + 1)) and len(begun) >= 2
    assert [s.number for s in ended] == [s.number for s in begun]
    assert all(s.duration_ms is not None for s in ended)


def usage(run: FinishedRun) -> None:
    """The script says input 100 and output 7 for each of two replies."""
    finished(run)
    assert sum(u.input_tokens for u in run.all(Usage)) == 200
    assert sum(u.output_tokens for u in run.all(Usage)) == 14


def code(run: FinishedRun) -> None:
    """Code that prints "one", waits, prints "two" and calls add(2, 3): the code and its output are streamed."""
    finished(run)
    call = run.call("python_interpreter")
    assert 'print("one")' in str(call.args)
    assert "one" in call.output and "two" in call.output
    printed = run.all(ToolOutputDelta, call_id=call.call_id)
    assert len(printed) >= 2
    assert call.started_at < run.call("add").started_at < run.call("add").ended_at < call.ended_at


def output_deltas(run: FinishedRun) -> None:
    """The tool `talk` says "halfway" while it runs."""
    finished(run)
    assert "halfway" in run.call("talk").output


def approval(run: FinishedRun) -> None:
    """danger("/tmp/x") is asked for and approved."""
    finished(run)
    asked = run.one(ApprovalRequested)
    call = run.call("danger")
    assert (asked.name, asked.args, asked.call_id) == ("danger", {"path": "/tmp/x"}, call.call_id)
    assert run.one(ApprovalResolved).decision == "approve"
    assert call.result == "/tmp/x is gone"
    assert call.started_at < run.at(asked) < call.ended_at


def approval_edited(run: FinishedRun) -> None:
    """The same, with another path."""
    finished(run)
    assert run.one(ApprovalResolved).args == {"path": "/tmp/y"}
    assert run.call("danger").result == "/tmp/y is gone"


def approval_rejected(run: FinishedRun) -> None:
    """The same, rejected: the tool does not run, and its call ends with an error and the outcome `rejected`."""
    finished(run)
    assert run.one(ApprovalResolved).decision == "reject"
    call = run.call("danger")
    assert call.error is not None
    assert call.finished.outcome == "rejected"
    assert "is gone" not in str(call.result)


def two_approvals(run: FinishedRun) -> None:
    """danger("/tmp/x") and danger("/tmp/y") in one reply: both are asked for before either runs."""
    finished(run)
    asked = run.all(ApprovalRequested)
    assert sorted(str(a.args) for a in asked) == ["{'path': '/tmp/x'}", "{'path': '/tmp/y'}"]
    assert {run.call("danger", 0).result, run.call("danger", 1).result} == {"/tmp/x is gone", "/tmp/y is gone"}


def approval_in_sub_agent(run: FinishedRun) -> None:
    """The helper calls danger("/tmp/x"): asked for once, by the helper."""
    finished(run)
    asked = run.one(ApprovalRequested)
    assert asked.agent_id == run.agent("helper").agent_id
    assert run.call("danger").result == "/tmp/x is gone"


def model_error(run: FinishedRun) -> None:
    """The model answers with HTTP 500."""
    assert isinstance(run.terminal, RunFailed)
    assert run.terminal.message and run.terminal.error_id


def cut_stream(run: FinishedRun) -> None:
    """The connection to the model breaks in the middle of a sentence."""
    assert isinstance(run.terminal, RunFailed)


def big_result(run: FinishedRun) -> None:
    """big(50000)."""
    finished(run)
    assert run.call("big").finished.size >= 50_000


def split_unicode(run: FinishedRun) -> None:
    """The answer is "Grüße 👩‍👩‍👧 世界 All done."."""
    finished(run)
    assert "Grüße 👩‍👩‍👧 世界" in str(run.answer)


def fifty_tools(run: FinishedRun) -> None:
    """add(0, 1) … add(49, 1) in one reply."""
    finished(run)
    assert {str(run.call("add", n).result) for n in range(50)} == {str(n + 1) for n in range(50)}


def stopped_in_a_tool(run: FinishedRun) -> None:
    """Stopped while slow("first", 30) runs."""
    assert isinstance(run.terminal, RunCancelled)
    assert run.call("slow").error is not None
    assert run.call("slow").finished.outcome == "stopped"


def stopped_in_a_sync_tool(run: FinishedRun) -> None:
    """Stopped while nap(1) runs, which ends."""
    assert isinstance(run.terminal, RunCancelled)
    assert run.call("nap").error is not None
    assert run.call("nap").finished.outcome == "stopped"
    assert [status.text for status in run.all(Status)] == ["napping"]


def _napping(event: AnyEvent) -> bool:
    return isinstance(event, Status) and event.text == "napping"


def _slow_runs(event: AnyEvent) -> bool:
    ready = isinstance(event, ToolReady) and event.args != {}
    return ready or (isinstance(event, ToolStarted) and event.name == "slow" and event.args is not None)


def _approve(_: ApprovalRequested) -> dict[str, Any]:
    return {"decision": "approve"}


def _edit(_: ApprovalRequested) -> dict[str, Any]:
    return {"decision": "edit", "args": {"path": "/tmp/y"}}


def _reject(_: ApprovalRequested) -> dict[str, Any]:
    return {"decision": "reject", "reason": "too dangerous"}


SCENARIOS: dict[str, Scenario] = {
    "text": Scenario(text),
    "reasoning": Scenario(reasoning, "reasoning"),
    "one_tool": Scenario(one_tool),
    "argument_deltas": Scenario(argument_deltas, "argument_deltas"),
    "parallel_tools": Scenario(parallel_tools, "parallel_tools", golden=False),
    "tool_error": Scenario(tool_error),
    "malformed_args": Scenario(malformed_args),
    "unknown_tool": Scenario(unknown_tool),
    "sub_agent": Scenario(sub_agent, "sub_agents"),
    "parallel_sub_agents": Scenario(parallel_sub_agents, "sub_agents", golden=False),
    "plan": Scenario(plan, "plans"),
    "steps": Scenario(steps, "steps"),
    "usage": Scenario(usage, "usage"),
    "code": Scenario(code, "code"),
    "output_deltas": Scenario(output_deltas, "output_deltas"),
    "approval": Scenario(approval, "approvals", decide=_approve),
    "approval_edited": Scenario(approval_edited, "approvals", decide=_edit),
    "approval_rejected": Scenario(approval_rejected, "approvals", decide=_reject),
    "two_approvals": Scenario(two_approvals, "approvals", golden=False, decide=_approve),
    "approval_in_sub_agent": Scenario(approval_in_sub_agent, "approvals", decide=_approve),
    "model_error": Scenario(model_error),
    "cut_stream": Scenario(cut_stream),
    "big_result": Scenario(big_result),
    "split_unicode": Scenario(split_unicode),
    "fifty_tools": Scenario(fifty_tools, golden=False),
    "stopped_in_a_tool": Scenario(stopped_in_a_tool, "stop_in_a_tool", golden=False, stop_at=_slow_runs),
    "stopped_in_a_sync_tool": Scenario(stopped_in_a_sync_tool, "stop_in_a_sync_tool", golden=False, stop_at=_napping),
}
