"""smolagents: approvals before the tools that the setting `approve` names, for which the agent's thread waits."""

import time
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, cast

import pytest

from limelight.errors import SetupError
from limelight.events import ApprovalRequested, ApprovalResolved, RunCancelled, ToolFinished, ToolStarted
from limelight.runs.agent_registry import Agent
from limelight.sources.base import Options
from limelight.sources.smolagents import SmolagentsSource
from limelight.sources.smolagents.reports import Observer
from limelight.sources.thread_bridge import ThreadCancelled
from limelight.understudy.scripts import parse_scripts
from limelight.understudy.server import Understudy
from tests.sources.live_turn import AgentServer, ModelEndpoint
from tests.sources.smolagents.smolagents_scenarios import DONE, calling, coding, leading, working
from tests.support.server import serving
from tests.support.wait import eventually

ADD = "{name: add, arguments: {a: 2, b: 3}}"
ADDING = f"- steps: [{{tool_calls: [{ADD}]}}]\n{DONE}"
CODE = "".join(
    f'- steps: [{{text: "<code>\\n{code}\\n</code>"}}]\n' for code in ("print(add(2, 3))", "final_answer(1)")
)
Answer = dict[str, Any]
Decide = Callable[[ApprovalRequested], Answer]


@asynccontextmanager
async def serve_agent(
    make: Callable[[ModelEndpoint], object], script: str, data: Path, *approve: str, **settings: Any
) -> AsyncGenerator[AgentServer]:
    async with Understudy(parse_scripts(script)) as understudy:
        endpoint = ModelEndpoint(understudy.base_url, understudy.key)
        source = SmolagentsSource(make(endpoint), Options(approve=approve))
        agent = Agent(name="agent", source=source, title="agent", description="")
        async with serving(agents=[agent], data=data, **settings) as served:
            yield AgentServer(served, endpoint)


def status_is(decision: str, **more: Any) -> Decide:
    return lambda _: {"decision": decision, **more}


@pytest.mark.parametrize(
    ("decide", "result", "error"),
    [
        (status_is("approve"), 5, None),
        (status_is("edit", args={"a": 20, "b": 3}), 23, None),
        (status_is("reject", reason="no sums"), "Error: rejected by local: no sums", "rejected by local: no sums"),
    ],
    ids=["approve", "edit", "reject"],
)
@pytest.mark.parametrize(("make", "script"), [(calling, ADDING), (coding, CODE)], ids=["called", "in code"])
async def test_tool_waits_for_its_approval(
    make: Any, script: str, decide: Decide, result: Any, error: str | None, tmp_path: Path
) -> None:
    async with serve_agent(make(), script, tmp_path, "add") as server:
        run = await server.run_deciding(decide)
    call = run.call("add")
    asked = run.one(ApprovalRequested)
    assert (asked.name, asked.args, asked.call_id) == ("add", {"a": 2, "b": 3}, call.call_id)
    assert run.one(ApprovalResolved).by == "local"
    assert call.error == error
    assert call.result == result or (make is coding and error and "no sums" in str(call.result))
    assert run.answer is not None  # the agent got the rejection, and continued


async def test_code_waits_for_its_approval(tmp_path: Path) -> None:
    def decide(asked: ApprovalRequested) -> Answer:
        code = str(asked.args["code"] if isinstance(asked.args, dict) else "")
        return {"decision": "edit", "args": {"code": "print('harmless')"}} if "add" in code else {"decision": "approve"}

    async with serve_agent(coding(), CODE, tmp_path, "python_interpreter") as server:
        run = await server.run_deciding(decide)
    assert run.call("python_interpreter").output == "harmless\n"
    assert len(run.all(ApprovalRequested)) == 2


async def test_rejected_code_does_not_run(tmp_path: Path) -> None:
    async with serve_agent(coding(max_steps=1), CODE, tmp_path, "python_interpreter") as server:
        run = await server.run_deciding(status_is("reject", reason="not here"))
    code = run.call("python_interpreter")
    assert (code.output, code.error) == ("", "rejected by local: not here")
    assert "add" not in [started.name for started in run.all(ToolStarted)]


async def test_parallel_calls_are_requested_together_and_rejected_one_by_one(tmp_path: Path) -> None:
    script = f"- steps: [{{tool_calls: [{ADD}, {{name: add, arguments: {{a: 20, b: 3}}}}]}}]\n{DONE}"

    def decide(asked: ApprovalRequested) -> Answer:
        return {"decision": "reject" if asked.args == {"a": 2, "b": 3} else "approve"}

    async with serve_agent(calling(), script, tmp_path, "add") as server:
        run = await server.run_deciding(decide)
    ended = {finished.result: finished.error for finished in run.all(ToolFinished)}
    assert ended == {23: None, "Error: rejected by local": "rejected by local"}


async def test_tool_of_a_managed_agent_waits_for_its_approval(tmp_path: Path) -> None:
    script = (
        "- match: add them\n  turns:\n"
        f"    - steps: [{{tool_calls: [{ADD}]}}]\n"
        "    - steps: [{tool_calls: [{name: final_answer, arguments: {answer: five}}]}]\n"
        "- turns:\n    - steps: [{tool_calls: [{name: helper, arguments: {task: add them}}]}]\n"
        "    - steps: [{tool_calls: [{name: final_answer, arguments: {answer: done}}]}]\n"
    )
    async with serve_agent(leading(calling, calling), script, tmp_path, "add") as server:
        run = await server.run_deciding(status_is("approve"))
    assert run.one(ApprovalRequested).agent_id == run.call("add").started.agent_id != ""
    assert run.call("add").result == 5


async def test_expired_request_is_a_rejection(tmp_path: Path) -> None:
    async with serve_agent(calling(), ADDING, tmp_path, "add", approvals__expiry_seconds=0.2) as server:
        run = await server.run()
    assert run.call("add").error == "rejected by system: expired"
    assert run.answer is not None


async def test_stop_releases_a_thread_that_waits(tmp_path: Path) -> None:
    async with serve_agent(calling(), ADDING, tmp_path, "add") as server:
        run = await server.run_until(lambda event: isinstance(event, ApprovalRequested))
        assert isinstance(run.terminal, RunCancelled)
        await eventually(lambda: not working(), 5)
    assert not any("cannot be interrupted" in str(event) for event in run.events)


def test_unknown_tool_name_is_a_setup_error() -> None:
    agent = leading(calling, coding)(ModelEndpoint("http://127.0.0.1:1/v1", "key"))
    SmolagentsSource(agent, Options(approve=("add", "helper", "python_interpreter")))
    with pytest.raises(SetupError, match=r"approve: 'ad' cannot be approved here; these can: .*add"):
        SmolagentsSource(agent, Options(approve=("ad",)))
    with pytest.raises(SetupError, match="'final_answer' cannot be approved"):
        SmolagentsSource(agent, Options(approve=("final_answer",)))


def test_tool_of_a_remote_executor_is_a_setup_error() -> None:
    class Elsewhere:
        """An executor in another process."""

    agent: Any = coding()(ModelEndpoint("http://127.0.0.1:1/v1", "key"))
    agent.python_executor = Elsewhere()
    SmolagentsSource(agent, Options(approve=("python_interpreter",)))
    with pytest.raises(SetupError, match="'add' cannot be approved here; these can: python_interpreter"):
        SmolagentsSource(agent, Options(approve=("add",)))


@pytest.mark.parametrize(
    "way_around",
    ["add._tool(2, 3)", "add._executor.call(add._tool, 'x', (2, 3), {})", "add.forward(2, 3)", "add.call(2, 3)"],
)
async def test_code_cannot_call_a_tool_without_its_approval(way_around: str, tmp_path: Path) -> None:
    script = f'- steps: [{{text: "<code>\\nprint({way_around})\\n</code>"}}]\n'
    async with serve_agent(coding(max_steps=1), script, tmp_path, "add") as server:
        run = await server.run_deciding(status_is("reject"))
    code = run.call("python_interpreter")
    assert code.output == "" and code.error is not None


async def test_approval_may_take_longer_than_the_timeout_of_code(tmp_path: Path) -> None:
    def make(endpoint: ModelEndpoint) -> Any:
        agent: Any = coding()(endpoint)
        agent.python_executor.timeout_seconds = 0.05
        return agent

    def decide(_: ApprovalRequested) -> Answer:
        time.sleep(0.5)  # a person does
        return {"decision": "approve"}

    async with serve_agent(make, CODE, tmp_path, "add") as server:
        run = await server.run_deciding(decide)
    assert run.call("python_interpreter").error is None
    assert run.call("python_interpreter").output == "5\n"


def test_request_that_was_never_delivered_releases_its_thread_at_stop() -> None:
    """It was still in the bridge when the run was stopped, so it gets no decision."""

    class Bridge:
        cancelled = False

        def put(self, report: object) -> None:
            self.cancelled = True

    observer = Observer(cast("Any", Bridge()), ("add",))
    with pytest.raises(ThreadCancelled):
        observer.approved_args("", 1, "add", {})
