# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownLambdaType=false, reportUnknownArgumentType=false
"""Runs that wait for a person survive their server, if the framework has saved their state."""

import asyncio
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypedDict

import pytest
from langchain.agents import create_agent
from langchain_core.tools import tool
from langgraph.graph import END

from limelight import current
from limelight.events import ApprovalRequested, ApprovalResolved, RunCancelled, RunFailed, RunFinished, ToolFinished
from tests.sources.agno import agno_scenarios, workflow_scenarios
from tests.sources.conformance import SCENARIOS, Case
from tests.sources.langgraph import langgraph_scenarios
from tests.sources.langgraph.graphs import chain
from tests.sources.live_turn import AgentServer, FinishedRun, ModelEndpoint, checked_run, record_of, serve_agent
from tests.sources.recorded_requests import record_requests
from tests.support.server import Frame, asking, collect

pytestmark = pytest.mark.usefixtures("agno_models")

FRAMEWORKS = {
    "langgraph": langgraph_scenarios.CASES,
    "agno": agno_scenarios.CASES,
    "agno workflow": workflow_scenarios.WORKFLOW_CASES,
}
Decide = Callable[[ApprovalRequested], dict[str, Any]]
ALL = [(framework, name) for framework in FRAMEWORKS for name, scenario in SCENARIOS.items() if scenario.decide]


async def run_until_waiting(server: AgentServer, wanted: int, **body: Any) -> list[Frame]:
    """Start a run, and read its stream until it waits for `wanted` decisions."""
    frames: list[Frame] = []
    async for frame in server.served.ask("go", format="records", **body):
        frames.append(frame)
        if sum(isinstance(record_of(seen).event, ApprovalRequested) for seen in frames) == wanted:
            break
    return frames


def requests(frames: list[Frame]) -> list[ApprovalRequested]:
    return [event for frame in frames if isinstance(event := record_of(frame).event, ApprovalRequested)]


async def decide(server: AgentServer, run_id: str, request: ApprovalRequested, decision: dict[str, Any]) -> None:
    response = await server.served.http.post(f"/runs/{run_id}/approvals/{request.approval_id}", json=decision)
    assert response.status_code == 200, response.text


async def rest_of_stream(server: AgentServer, run_id: str, after: str) -> list[Frame]:
    params = {"format": "records", "after": after}
    return await collect(server.served.stream("GET", f"/runs/{run_id}/stream", params=params))


async def suspended(case: Case, data: Path, wanted: int, **body: Any) -> list[Frame]:
    """Start a run that waits for `wanted` decisions, and end its server."""
    async with serve_agent(case.make, case.script, data) as server:
        return await run_until_waiting(server, wanted, **body)


async def resumed(case: Case, data: Path, before: list[Frame], decide_by: Decide | None = None) -> FinishedRun:
    """Start another server, decide the requests of a suspended run, and return all of the run."""
    run_id = record_of(before[0]).run_id
    async with serve_agent(case.make, case.script, data) as server:
        if decide_by is not None:
            for request in requests(before):
                await decide(server, run_id, request, decide_by(request))
        return checked_run([*before, *await rest_of_stream(server, run_id, before[-1].id)])


async def decided_first(server: AgentServer, decision: dict[str, Any]) -> tuple[str, list[Frame]]:
    """Start a run that waits for two decisions, and give the first. Returns the run id and the frames so far."""
    before = await run_until_waiting(server, 2)
    run_id = record_of(before[0]).run_id
    await decide(server, run_id, requests(before)[0], decision)
    watching = server.served.stream("GET", f"/runs/{run_id}/stream", params={"format": "records"})
    return run_id, await collect(watching, until=lambda f: isinstance(record_of(f).event, ApprovalResolved))


def approve(_: ApprovalRequested) -> dict[str, Any]:
    return {"decision": "approve"}


@pytest.mark.requirement("waiting-run-survives-restart")
@pytest.mark.parametrize(("framework", "name"), ALL)
async def test_decision_after_a_restart_resumes_the_run(framework: str, name: str, tmp_path: Path) -> None:
    scenario, case = SCENARIOS[name], FRAMEWORKS[framework][name]
    before = await suspended(case, tmp_path, 2 if name == "two_approvals" else 1)
    run = await resumed(case, tmp_path, before, scenario.decide)
    scenario.expect(run)
    assert all(finished.duration_ms is not None for finished in run.all(ToolFinished))


LANGGRAPH = langgraph_scenarios.CASES["two_approvals"]
AGNO = agno_scenarios.CASES["two_approvals"]


@pytest.mark.parametrize("case", [LANGGRAPH, AGNO], ids=["langgraph", "agno"])
async def test_decision_before_a_restart_is_applied_after_it(case: Case, tmp_path: Path) -> None:
    async with serve_agent(case.make, case.script, tmp_path) as server:
        run_id, before = await decided_first(server, {"decision": "approve"})
    first, second = requests(before)
    async with serve_agent(case.make, case.script, tmp_path) as server:
        await decide(server, run_id, second, {"decision": "reject", "reason": "not this one"})
        after = await rest_of_stream(server, run_id, before[-1].id)
    run = checked_run([*before, *after])
    assert isinstance(run.terminal, RunFinished)
    ends = {str(run.call("danger", n).args["path"]): run.call("danger", n) for n in (0, 1)}
    approved, rejected = ends[str(first.args["path"])], ends[str(second.args["path"])]  # pyright: ignore[reportArgumentType]
    assert "is gone" in str(approved.result) and rejected.error is not None


@pytest.mark.parametrize("case", [LANGGRAPH, AGNO], ids=["langgraph", "agno"])
async def test_duration_of_a_call_excludes_the_wait_for_the_other_approval(
    case: Case, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    passed = 0.0
    monkeypatch.setattr("limelight.runs.engine.perf_counter", lambda: time.perf_counter() + passed)
    async with serve_agent(case.make, case.script, tmp_path) as server:
        run_id, before = await decided_first(server, {"decision": "approve"})
        passed = 1000
        await decide(server, run_id, requests(before)[1], {"decision": "approve"})
        run = checked_run([*before, *await rest_of_stream(server, run_id, before[-1].id)])
    durations = [finished.duration_ms for finished in run.all(ToolFinished)]
    assert len(durations) == 2 and all(took is not None and took < 500_000 for took in durations), durations


@pytest.mark.parametrize("case", [LANGGRAPH, AGNO], ids=["langgraph", "agno"])
async def test_instructions_of_the_request_are_applied_after_a_restart(
    case: Case, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    messages = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "go"}]
    sent = record_requests(monkeypatch)
    before = await suspended(case, tmp_path, 2, messages=messages)
    sent.clear()
    await resumed(case, tmp_path, before, approve)
    assert sent and all("Be brief." in str(request["messages"]) for request in sent)


@pytest.mark.parametrize("case", [LANGGRAPH, AGNO], ids=["langgraph", "agno"])
async def test_stop_ends_a_resumed_run_that_waits(case: Case, tmp_path: Path) -> None:
    before = await suspended(case, tmp_path, 2, session_id="s")
    run_id = record_of(before[0]).run_id
    async with serve_agent(case.make, case.script, tmp_path) as server:
        problem = await server.served.problem("POST", "/chat", json=asking("x", session_id="s"))
        assert problem["code"] == "session_busy"
        (await server.served.http.post(f"/runs/{run_id}/cancel", json={})).raise_for_status()
        run = checked_run([*before, *await rest_of_stream(server, run_id, before[-1].id)])
        assert isinstance(run.terminal, RunCancelled)
        again = await server.run_deciding(approve, chat_id="s")
        assert isinstance(again.terminal, RunFinished)


async def test_request_that_expires_without_a_server_is_rejected_at_the_start(tmp_path: Path) -> None:
    settings: dict[str, Any] = {"approvals__expiry_seconds": 0.3}
    async with serve_agent(LANGGRAPH.make, LANGGRAPH.script, tmp_path, **settings) as server:
        before = await run_until_waiting(server, 2)
    await asyncio.sleep(0.3)  # until the request has expired
    run_id = record_of(before[0]).run_id
    async with serve_agent(LANGGRAPH.make, LANGGRAPH.script, tmp_path, **settings) as server:
        run = checked_run([*before, *await rest_of_stream(server, run_id, before[-1].id)])
    assert [resolved.reason for resolved in run.all(ApprovalResolved)] == ["expired", "expired"]
    assert isinstance(run.terminal, RunFinished)


async def test_server_without_the_agent_leaves_the_run_open(tmp_path: Path) -> None:
    before = await suspended(LANGGRAPH, tmp_path, 2)
    async with serve_agent(LANGGRAPH.make, LANGGRAPH.script, tmp_path, name="other") as server:
        view = (await server.served.http.get(f"/runs/{record_of(before[0]).run_id}")).json()
        assert view["state"] == "waiting"
    run = await resumed(LANGGRAPH, tmp_path, before, approve)
    assert isinstance(run.terminal, RunFinished)


def delete_state(data: Path) -> None:
    for file in data.glob("langgraph.db*"):
        file.unlink()


async def test_resume_of_a_graph_without_saved_state_fails_with_a_reason(tmp_path: Path) -> None:
    before = await suspended(LANGGRAPH, tmp_path, 2)
    delete_state(tmp_path)
    run = await resumed(LANGGRAPH, tmp_path, before)
    assert isinstance(run.terminal, RunFailed)
    assert run.terminal.code == "interrupted"


class Rounds(TypedDict):
    question: str
    rounds: int


def one_more(state: Rounds) -> dict[str, int]:
    return {"rounds": state.get("rounds", 0) + 1}


def in_rounds(_: ModelEndpoint) -> Any:
    """Interrupts before each of three rounds with the same value."""
    builder = chain(Rounds, work=one_more)
    builder.add_conditional_edges("work", lambda state: "work" if state["rounds"] < 3 else END)
    return builder.compile(interrupt_before=["work"])


async def test_decision_is_not_applied_to_a_later_request_with_equal_arguments(tmp_path: Path) -> None:
    async with serve_agent(in_rounds, "", tmp_path) as server:
        before: list[Frame] = []
        async for frame in server.served.ask("go", format="records"):
            before.append(frame)
            if len(requests(before)) == 2:
                break
            if requests([frame]):
                await decide(server, record_of(frame).run_id, requests([frame])[0], {"decision": "approve"})
    run_id = record_of(before[0]).run_id
    async with serve_agent(in_rounds, "", tmp_path) as server:
        await decide(server, run_id, requests(before)[1], {"decision": "approve"})
        after: list[Frame] = []
        params = {"format": "records", "after": before[-1].id}
        async for frame in server.served.stream("GET", f"/runs/{run_id}/stream", params=params):
            after.append(frame)
            for request in requests([frame]):
                await decide(server, run_id, request, {"decision": "reject"})
    run = checked_run([*before, *after])
    assert [resolved.decision for resolved in run.all(ApprovalResolved)] == ["approve", "approve", "reject"]
    assert run.answer["rounds"] == 2


@tool
async def asks(path: str) -> str:
    """Ask a person from inside of the tool."""
    run = current()
    assert run is not None
    return str(bool(await run.approve("asks", {"path": path})))


async def test_run_in_which_a_tool_has_asked_itself_is_interrupted_by_a_restart(tmp_path: Path) -> None:
    def make(endpoint: ModelEndpoint) -> Any:
        return create_agent(langgraph_scenarios.model(endpoint), [asks])

    script = langgraph_scenarios.answering("- steps: [{tool_calls: [{name: asks, arguments: {path: /tmp/x}}]}]")
    before = await suspended(Case(make, script), tmp_path, 1)
    run = await resumed(Case(make, script), tmp_path, before)
    assert isinstance(run.terminal, RunFailed) and run.terminal.code == "interrupted"
    assert run.one(ApprovalResolved).decision == "reject"


@pytest.mark.parametrize("case", [LANGGRAPH, AGNO], ids=["langgraph", "agno"])
async def test_large_edited_arguments_are_complete_after_a_restart(case: Case, tmp_path: Path) -> None:
    edited = {"path": "/tmp/" + "z" * 40_000}
    async with serve_agent(case.make, case.script, tmp_path) as server:
        run_id, before = await decided_first(server, {"decision": "edit", "args": edited})
    first, second = requests(before)
    async with serve_agent(case.make, case.script, tmp_path) as server:
        await decide(server, run_id, second, {"decision": "reject"})
        await rest_of_stream(server, run_id, before[-1].id)
        kept = await server.served.http.get(f"/runs/{run_id}/tools/{first.call_id}")
    assert kept.json()["result"] == f"{edited['path']} is gone"
