"""A person is asked before the tools that the configuration names; the thread of the agent stands still meanwhile."""

import threading
import time
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, cast

import pytest

from limelight.errors import SetupError
from limelight.events import ApprovalRequested, ApprovalResolved, RunCancelled, ToolFinished, ToolStarted
from limelight.runs.agents import Agent
from limelight.sources.base import Options
from limelight.sources.smolagents import SmolagentsSource
from limelight.sources.smolagents.signals import Observer
from limelight.sources.threads import ThreadCancelled
from limelight.understudy.scripts import parse_scripts
from limelight.understudy.server import Understudy
from tests.sources.live_turn import Stage, Theatre
from tests.sources.smolagents.smolagents_scenarios import DONE, calling, coding, leading
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
async def theatre(
    make: Callable[[Stage], object], script: str, data: Path, *approve: str, **settings: Any
) -> AsyncGenerator[Theatre]:
    async with Understudy(parse_scripts(script)) as understudy:
        stage = Stage(understudy.base_url, understudy.key)
        source = SmolagentsSource(make(stage), Options(approve=approve))
        agent = Agent(name="agent", source=source, title="agent", description="")
        async with serving(agents=[agent], data=data, **settings) as served:
            yield Theatre(served, stage)


def saying(decision: str, **more: Any) -> Decide:
    return lambda _: {"decision": decision, **more}


@pytest.mark.parametrize(
    ("decide", "result", "error"),
    [
        (saying("approve"), 5, None),
        (saying("edit", args={"a": 20, "b": 3}), 23, None),
        (saying("reject", reason="no sums"), "Error: rejected by local: no sums", "rejected by local: no sums"),
    ],
    ids=["approve", "edit", "reject"],
)
@pytest.mark.parametrize(("make", "script"), [(calling, ADDING), (coding, CODE)], ids=["called", "in code"])
async def test_a_tool_waits_for_its_answer(
    make: Any, script: str, decide: Decide, result: Any, error: str | None, tmp_path: Path
) -> None:
    async with theatre(make(), script, tmp_path, "add") as stage:
        run = await stage.play_deciding(decide)
    call = run.call("add")
    asked = run.one(ApprovalRequested)
    assert (asked.name, asked.args, asked.call_id) == ("add", {"a": 2, "b": 3}, call.call_id)
    assert run.one(ApprovalResolved).by == "local"
    assert call.error == error
    assert call.result == result or (make is coding and error and "no sums" in str(call.result))
    assert run.answer is not None  # the agent was told, and went on


async def test_code_waits_for_its_answer(tmp_path: Path) -> None:
    def decide(asked: ApprovalRequested) -> Answer:
        code = str(asked.args["code"] if isinstance(asked.args, dict) else "")
        return {"decision": "edit", "args": {"code": "print('harmless')"}} if "add" in code else {"decision": "approve"}

    async with theatre(coding(), CODE, tmp_path, "python_interpreter") as stage:
        run = await stage.play_deciding(decide)
    assert run.call("python_interpreter").output == "harmless\n"
    assert len(run.all(ApprovalRequested)) == 2


async def test_code_that_is_rejected_does_not_run(tmp_path: Path) -> None:
    async with theatre(coding(max_steps=1), CODE, tmp_path, "python_interpreter") as stage:
        run = await stage.play_deciding(saying("reject", reason="not here"))
    code = run.call("python_interpreter")
    assert (code.output, code.error) == ("", "rejected by local: not here")
    assert "add" not in [started.name for started in run.all(ToolStarted)]


async def test_calls_at_once_are_asked_at_once_and_one_no_is_only_its_own(tmp_path: Path) -> None:
    script = f"- steps: [{{tool_calls: [{ADD}, {{name: add, arguments: {{a: 20, b: 3}}}}]}}]\n{DONE}"

    def decide(asked: ApprovalRequested) -> Answer:
        return {"decision": "reject" if asked.args == {"a": 2, "b": 3} else "approve"}

    async with theatre(calling(), script, tmp_path, "add") as stage:
        run = await stage.play_deciding(decide)
    ended = {finished.result: finished.error for finished in run.all(ToolFinished)}
    assert ended == {23: None, "Error: rejected by local": "rejected by local"}


async def test_a_helpers_tool_waits_too(tmp_path: Path) -> None:
    script = (
        "- match: add them\n  turns:\n"
        f"    - steps: [{{tool_calls: [{ADD}]}}]\n"
        "    - steps: [{tool_calls: [{name: final_answer, arguments: {answer: five}}]}]\n"
        "- turns:\n    - steps: [{tool_calls: [{name: helper, arguments: {task: add them}}]}]\n"
        "    - steps: [{tool_calls: [{name: final_answer, arguments: {answer: done}}]}]\n"
    )
    async with theatre(leading(calling, calling), script, tmp_path, "add") as stage:
        run = await stage.play_deciding(saying("approve"))
    assert run.one(ApprovalRequested).agent_id == run.call("add").started.agent_id != ""
    assert run.call("add").result == 5


async def test_no_answer_in_time_is_a_no(tmp_path: Path) -> None:
    async with theatre(calling(), ADDING, tmp_path, "add", approvals__expiry_seconds=0.2) as stage:
        run = await stage.play()
    assert run.call("add").error == "rejected by system: expired"
    assert run.answer is not None


async def test_stop_lets_the_thread_go(tmp_path: Path) -> None:
    async with theatre(calling(), ADDING, tmp_path, "add") as stage:
        run = await stage.play_until(lambda event: isinstance(event, ApprovalRequested))
        assert isinstance(run.terminal, RunCancelled)
        await eventually(lambda: not [t for t in threading.enumerate() if t.name.startswith("limelight-run_")], 5)
    assert not any("cannot be interrupted" in str(event) for event in run.events)


def test_a_tool_that_is_not_there_is_refused_at_the_start() -> None:
    agent = leading(calling, coding)(Stage("http://127.0.0.1:1/v1", "key"))
    SmolagentsSource(agent, Options(approve=("add", "helper", "python_interpreter")))
    with pytest.raises(SetupError, match=r"approve: nobody can be asked before 'ad' here; there are: .*add"):
        SmolagentsSource(agent, Options(approve=("ad",)))
    with pytest.raises(SetupError, match="before 'final_answer'"):
        SmolagentsSource(agent, Options(approve=("final_answer",)))


def test_tools_that_run_elsewhere_cannot_be_held_up() -> None:
    class Elsewhere:
        """Runs code in a container, say."""

    agent: Any = coding()(Stage("http://127.0.0.1:1/v1", "key"))
    agent.python_executor = Elsewhere()
    SmolagentsSource(agent, Options(approve=("python_interpreter",)))
    with pytest.raises(SetupError, match="nobody can be asked before 'add' here; there are: python_interpreter"):
        SmolagentsSource(agent, Options(approve=("add",)))


@pytest.mark.parametrize(
    "way_around",
    ["add._tool(2, 3)", "add._executor.call(add._tool, 'x', (2, 3), {})", "add.forward(2, 3)", "add.call(2, 3)"],
)
async def test_code_finds_no_way_around_the_question(way_around: str, tmp_path: Path) -> None:
    script = f'- steps: [{{text: "<code>\\nprint({way_around})\\n</code>"}}]\n'
    async with theatre(coding(max_steps=1), script, tmp_path, "add") as stage:
        run = await stage.play_deciding(saying("reject"))
    code = run.call("python_interpreter")
    assert code.output == "" and code.error is not None


async def test_people_may_take_longer_than_code_may(tmp_path: Path) -> None:
    def make(stage: Stage) -> Any:
        agent: Any = coding()(stage)
        agent.python_executor.timeout_seconds = 0.05
        return agent

    def decide(_: ApprovalRequested) -> Answer:
        time.sleep(0.5)  # a person does
        return {"decision": "approve"}

    async with theatre(make, CODE, tmp_path, "add") as stage:
        run = await stage.play_deciding(decide)
    assert run.call("python_interpreter").error is None
    assert run.call("python_interpreter").output == "5\n"


def test_a_question_that_was_on_its_way_at_the_end_lets_its_thread_go() -> None:
    """Nobody has taken it out of the bridge, so nobody will answer it."""

    class Bridge:
        cancelled = False

        def put(self, signal: object) -> None:
            self.cancelled = True

    observer = Observer(cast("Any", Bridge()), ("add",))
    with pytest.raises(ThreadCancelled):
        observer.approved_args("", 1, "add", {})
