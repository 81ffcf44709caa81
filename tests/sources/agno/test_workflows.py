"""Agno: workflows, with all that Agno puts together in them."""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# Agno's own types are partly unknown.

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from agno.db.in_memory import InMemoryDb
from agno.db.sqlite import AsyncSqliteDb
from agno.run.workflow import WorkflowRunEvent, WorkflowRunOutput
from agno.workflow.agent import WorkflowAgent
from agno.workflow.workflow import Workflow

from limelight.events import (
    AgentFinished,
    AgentStarted,
    FinalAnswer,
    RunFailed,
    RunFinished,
    Status,
    StepFinished,
    StepStarted,
    TextDelta,
    ToolFinished,
    ToolStarted,
)
from limelight.json_values import json_value
from limelight.sources.agno import AgnoSource
from limelight.sources.agno.workflow import WorkflowSource
from limelight.sources.agno.workflow_translator import WORKFLOW_DROPS, WorkflowTranslator
from limelight.understudy.scripts import parse_scripts
from limelight.understudy.server import Understudy
from tests.sources.agno.agno_scenarios import model, plain
from tests.sources.agno.workflow_scenarios import (
    CONSTRUCTS,
    FAILING,
    SCRIPT,
    UNORDERED,
    WORKFLOW_CASES,
    Step,
    fail,
    prepare,
    side_by_side,
    spell,
    workflow,
)
from tests.sources.conformance import SCENARIOS
from tests.sources.live_turn import AgentServer, FinishedRun, ModelEndpoint, run_agent, serve_agent
from tests.sources.recorded_requests import Requests
from tests.sources.suite import golden
from tests.support.server import offer, serving

pytestmark = pytest.mark.usefixtures("agno_models")

NOWHERE = ModelEndpoint("http://127.0.0.1:1/v1", "key")


class TestWorkflow:
    """The scenarios of all sources, played by an agent in a step of a workflow."""

    @pytest.mark.parametrize("name", WORKFLOW_CASES)
    async def test_scenario(self, name: str, tmp_path: Path) -> None:
        scenario, case = SCENARIOS[name], WORKFLOW_CASES[name]
        run = await run_agent(case.make, case.script, tmp_path, decide=scenario.decide, stop_at=scenario.stop_at)
        scenario.expect(run)
        if scenario.golden and name != "plan":  # the tasks of a plan have random ids
            golden("agno_workflow", name, run)


@pytest.mark.parametrize("name", [name for name in CONSTRUCTS if name not in UNORDERED])
async def test_construct_has_its_golden_transcript(name: str, tmp_path: Path) -> None:
    golden("agno_workflow", f"construct_{name}", await run_agent(CONSTRUCTS[name], SCRIPT, tmp_path))


def test_source_of_a_workflow_is_that_of_agno() -> None:
    source = AgnoSource(workflow(spell, description="Spells.\nAll day."))
    assert isinstance(source, WorkflowSource) and source.description == "Spells."
    assert AgnoSource.accepts(workflow(spell)) and not AgnoSource.accepts(Workflow)
    assert not isinstance(AgnoSource(plain(NOWHERE)), WorkflowSource)


def test_every_event_of_a_workflow_is_handled_or_in_drops() -> None:
    names = {kind.value for kind in WorkflowRunEvent}
    handled = WorkflowTranslator("run").workflow_handled
    assert names == handled | WORKFLOW_DROPS, "decide what becomes of these"
    assert handled & WORKFLOW_DROPS == frozenset()


# What Agno itself ends with


async def run_without_limelight(name: str) -> WorkflowRunOutput:
    async with Understudy(parse_scripts(SCRIPT)) as understudy:
        flow = CONSTRUCTS[name](ModelEndpoint(understudy.base_url, understudy.key))
        stream: Any = flow.arun("go", stream=True, stream_events=True)
        events = [event async for event in stream]
        completed = [event for event in events if event.event == "WorkflowCompleted"]
        return completed[-1].run_output


def executor_runs(output: Any) -> list[Any]:
    """All runs of agents in the run of a workflow, also those of nested workflows and of members."""
    if not isinstance(output, WorkflowRunOutput):
        return [output]
    return [run for inner in output.step_executor_runs or () for run in executor_runs(inner)]


def results(output: Any) -> list[Any]:
    """The results of all steps that contain no others."""
    found: Any = output.step_results if isinstance(output, WorkflowRunOutput) else output.steps
    return [leaf for one in found or () for leaf in (results(one) if one.steps else [one])]


def texts_of(run: FinishedRun) -> list[str]:
    ids = dict.fromkeys(event.message_id for event in run.all(TextDelta))
    return ["".join(event.text for event in run.all(TextDelta, message_id=message_id)) for message_id in ids]


@pytest.mark.requirement("agno-workflows")
@pytest.mark.parametrize("name", CONSTRUCTS)
async def test_workflow_shows_what_agno_ends_with(name: str, tmp_path: Path) -> None:
    """Each tool call, each answer of an agent and each result of a function, once; in order if they have one."""
    expected = await run_without_limelight(name)
    run = await run_agent(CONSTRUCTS[name], SCRIPT, tmp_path)
    assert run.terminal == RunFinished()
    if name != "nested_parallel":  # Agno's answer is that of the branch that ends last, which differs between two runs
        assert run.answer == json_value(expected.content)

    calls = [(t.tool_name, t.tool_args, t.result) for inner in executor_runs(expected) for t in inner.tools or ()]
    if name != "forwarded":  # Agno keeps no run of an agent that a function has run
        ends = {end.call_id: end.result for end in run.all(ToolFinished)}
        shown = [(start.name, start.args, ends[start.call_id]) for start in run.all(ToolStarted)]
        assert Counter(map(str, shown)) == Counter(map(str, calls))

    said = [str(leaf.content) for leaf in results(expected) if leaf.success and leaf.content]
    shown_texts = texts_of(run)
    assert Counter(said) == Counter(shown_texts) or name == "function_only"
    assert run.answer in said or name != "nested_parallel"
    if name not in UNORDERED:
        assert said == shown_texts or name == "function_only"
    answer = run.one(FinalAnswer)
    main = [event.text for event in run.all(TextDelta, agent_id="")]
    assert "".join(main) == (answer.content if answer.message_id else "")  # the answer is said once


@pytest.mark.parametrize("name", CONSTRUCTS)
async def test_every_executed_step_is_named(name: str, tmp_path: Path) -> None:
    expected = await run_without_limelight(name)
    run = await run_agent(CONSTRUCTS[name], SCRIPT, tmp_path)
    names = Counter(step.step_kind for step in run.all(StepStarted)) + Counter(a.name for a in run.all(AgentStarted))
    steps = Counter(str(leaf.step_name) for leaf in results(expected) if leaf.step_name)
    assert not steps - names


@pytest.mark.requirement("same-requests")
@pytest.mark.parametrize("name", [*(name for name in CONSTRUCTS if name not in UNORDERED), "deciding"])
async def test_models_get_the_same_requests_with_and_without_limelight(
    name: str, tmp_path: Path, requests: Requests
) -> None:
    make, script = (deciding, DECIDING) if name == "deciding" else (CONSTRUCTS[name], SCRIPT)
    async with Understudy(parse_scripts(script)) as understudy:
        flow = make(ModelEndpoint(understudy.base_url, understudy.key))
        if name == "deciding":
            flow.db = InMemoryDb()
        stream: Any = flow.arun("go", stream=True, stream_events=True)
        assert [event async for event in stream]
    without = [(request["messages"], request.get("tools")) for request in requests]
    requests.clear()
    await run_agent(make, script, tmp_path)
    assert [(request["messages"], request.get("tools")) for request in requests] == without


# Branches, iterations and errors


async def test_parallel_branches_are_agents_side_by_side(tmp_path: Path) -> None:
    run = await run_agent(CONSTRUCTS["parallel"], SCRIPT, tmp_path)
    branches = [run.agent(name) for name in ("left", "right", "spell")]
    assert {branch.parent_id for branch in branches} == {""}
    ends = [run.at(run.one(AgentFinished, agent_id=branch.agent_id)) for branch in branches]
    assert max(run.at(branch) for branch in branches) < min(ends)
    assert run.agent("rightist").parent_id == run.agent("right").agent_id
    assert {call.agent_id for call in run.all(ToolStarted)} == {"left-2", "rightist"}
    assert run.text("spell") == "one two"


async def test_iterations_are_agents_one_after_the_other(tmp_path: Path) -> None:
    run = await run_agent(CONSTRUCTS["loop"], SCRIPT, tmp_path)
    first, second = run.agent("refine (iteration 1)"), run.agent("refine (iteration 2)")
    assert run.at(run.one(AgentFinished, agent_id=first.agent_id)) < run.at(second)
    assert [a.parent_id for a in run.all(AgentStarted, name="writer")] == [first.agent_id, second.agent_id]
    assert [s.step_kind for s in run.all(StepStarted, agent_id=second.agent_id)] == ["prepare", "draft"]


async def test_decisions_of_conditions_and_routers_are_reported(tmp_path: Path) -> None:
    run = await run_agent(CONSTRUCTS["condition"], SCRIPT, tmp_path)
    texts = [status.text for status in run.all(Status)]
    assert [text for text in texts if "condition" in text] == [
        "short: the condition is true",
        "long: the condition is false",
        "never: the condition is false",
    ]
    routed = await run_agent(CONSTRUCTS["router"], SCRIPT, tmp_path / "router")
    assert [status.text for status in routed.all(Status)] == ["route: chosen: hard"]


async def test_skipped_steps_have_their_errors_and_the_workflow_continues(tmp_path: Path) -> None:
    run = await run_agent(CONSTRUCTS["skipped_errors"], SCRIPT, tmp_path)
    failed = {step.step_kind for step in run.all(StepFinished) if step.error == "no such file"}
    assert {"first", "second", "third", "fourth"} <= failed
    assert run.answer == "prepared: go"


async def test_failing_step_fails_the_run(tmp_path: Path) -> None:
    step = Step(name="last", executor=fail, max_retries=0, human_review=FAILING)
    run = await run_agent(lambda _: workflow(prepare, step), SCRIPT, tmp_path)
    assert isinstance(run.terminal, RunFailed) and "no such file" in run.terminal.message
    assert [(s.step_kind, s.error) for s in run.all(StepFinished)] == [("prepare", None), ("last", "no such file")]


async def test_early_stop_is_reported_and_ends_the_workflow(tmp_path: Path) -> None:
    run = await run_agent(CONSTRUCTS["early_stop"], SCRIPT, tmp_path)
    assert run.answer == "Enough."
    assert [s.step_kind for s in run.all(StepStarted)] == ["prepare", "stop_early"]
    assert Status(text="stop_early has stopped the workflow") in run.events


async def test_retries_of_a_step_are_agents_of_their_own(tmp_path: Path) -> None:
    script = "- steps: [{error: {status: 500, message: out of order}}]"

    def make(endpoint: ModelEndpoint) -> Workflow:
        return workflow(Step(name="act", agent=plain(endpoint), max_retries=1))

    run = await run_agent(make, script, tmp_path)
    assert [end.error for end in run.all(AgentFinished)] == ["out of order"] * 2
    assert [a.name for a in run.all(AgentStarted)] == ["actor"] * 2
    (step,) = run.all(StepFinished, agent_id="")
    assert step.step_kind == "act" and "out of order" in (step.error or "")


DECIDING = """
- match: "the topic"
  turns:
    - steps: [{tool_calls: [{name: add, arguments: {a: 2, b: 3}}]}]
    - steps: [{text: The sum is five.}]
- match: "again"
  turns:
    - steps: [{text: I know that already.}]
- turns:
    - steps: [{tool_calls: [{name: run_workflow, arguments: {query: the topic}}]}]
    - steps: [{text: All done.}]
"""


def deciding(endpoint: ModelEndpoint) -> Workflow:
    worker = Step(name="work", agent=plain(endpoint, name="worker"))
    return workflow(worker, side_by_side("both", spell), prepare, agent=WorkflowAgent(model=model(endpoint)))


async def test_workflow_agent_runs_the_workflow_or_answers_itself(tmp_path: Path) -> None:
    async with serve_agent(deciding, DECIDING, tmp_path) as server:
        run = await server.run(session_id="a")
        again = await server.run("again", session_id="a")
    golden("agno_workflow", "workflow_agent", run)
    assert [s.step_kind for s in run.all(StepStarted, agent_id="")] == ["work", "both", "prepare"]
    assert run.call("add").started.agent_id == "worker" and run.call("run_workflow").ended_at > run.call("add").ended_at
    assert run.answer == "prepared: the topic"
    assert again.answer == "I know that already." and again.all(ToolStarted) == []


@pytest.mark.parametrize("is_deciding", [False, True], ids=["steps", "workflow_agent"])
async def test_workflow_that_stores_its_events_is_saved_without_those_of_limelight(
    is_deciding: bool, tmp_path: Path, requests: Requests
) -> None:
    file = tmp_path / "own.db"
    db = AsyncSqliteDb(db_file=str(file))

    def make(endpoint: ModelEndpoint) -> Workflow:
        flow = deciding(endpoint) if is_deciding else CONSTRUCTS["sequence"](endpoint)
        flow.db, flow.store_events, flow.add_workflow_history_to_steps = db, True, True
        return flow

    async with serve_agent(make, DECIDING if is_deciding else SCRIPT, tmp_path) as server:
        await server.run("first", session_id="a")
        await server.run("again", session_id="a")
    await db.close()
    assert "first" in str(requests[-1]["messages"])
    stored = file.read_bytes()
    assert b"WorkflowStarted" in stored and b"imelight" not in stored


async def test_workflow_ends_at_the_step_limit(tmp_path: Path) -> None:
    agent = offer(workflow(prepare, spell, prepare), "agent", max_steps=2)
    async with serving(agents=[agent], data=tmp_path) as served:
        run = await AgentServer(served, NOWHERE).run()
    assert run.terminal == RunFinished(code="max_steps")
    assert [s.step_kind for s in run.all(StepStarted)] == ["prepare", "spell"]
    assert run.answer == "one two"


def visible(value: Any) -> Any:
    """A workflow, a step or an agent as plain values, without the connections of its models."""
    if isinstance(value, list):
        return [visible(one) for one in value]
    if not hasattr(value, "__dict__") or callable(value):
        return value
    fields = {name: field for name, field in vars(value).items() if name not in ("model", "human_review")}
    is_part = hasattr(value, "steps") or hasattr(value, "agent")
    return {name: visible(field) if is_part else field for name, field in fields.items()}


async def test_runs_do_not_change_the_given_workflow(tmp_path: Path) -> None:
    given: list[Workflow] = []

    def made(endpoint: ModelEndpoint) -> Workflow:
        given.append(CONSTRUCTS["nested_parallel"](endpoint))
        return given[0]

    async with serve_agent(made, SCRIPT, tmp_path) as server:
        before = visible(given[0])
        run = await server.run(session_id="a")
        assert visible(given[0]) == before
        assert given[0].db is None and not given[0].add_workflow_history_to_steps
        plainly: Any = await given[0].arun("go")  # and it can be used beside Limelight
        assert plainly.content == run.answer
