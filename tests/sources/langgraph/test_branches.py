# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false, reportUnknownLambdaType=false
"""LangGraph: tasks that run beside each other, as branches. The log is compared with the state of the graph."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from limelight.events import (
    AgentFinished,
    AgentStarted,
    ApprovalRequested,
    FinalAnswer,
    RunCancelled,
    RunFailed,
    RunFinished,
    Status,
    StepFinished,
    StepStarted,
    TextDelta,
    TextFinished,
    ToolFinished,
    ToolStarted,
)
from tests.sources.conformance import Case
from tests.sources.langgraph import branch_graphs as graphs
from tests.sources.langgraph.state_judge import StateJudge
from tests.sources.live_turn import FinishedRun, run_agent, serve_agent
from tests.sources.test_suspended_runs import resumed, suspended

SCRIPT = """
- match: end
  turns: [{steps: [{text: All done.}]}]
- match: outline
  turns: [{steps: [{text: "bees, wasps"}]}]
- match: plan
  turns: [{steps: [{text: "bees, wasps"}]}]
- match: draft 1
  turns: [{steps: [{text: The first draft.}]}]
- match: draft
  turns: [{steps: [{text: The second draft.}]}]
- match: review 1
  turns: [{steps: [{text: Not good.}]}]
- match: review
  turns: [{steps: [{text: Good.}]}]
- match: polish
  turns: [{steps: [{text: Polished.}]}]
- match: route
  turns: [{steps: [{text: wasps}]}]
- match: outer
  turns: [{steps: [{delay: 0.01}, {text: I am outside of it.}]}]
- match: bees
  turns: [{steps: [{delay: 0.04}, {text: Bees make honey for us.}]}]
- match: wasps
  turns: [{steps: [{delay: 0.04}, {text: Wasps do not do this.}]}]
- match: ants
  turns: [{steps: [{delay: 0.04}, {text: Ants are always busy.}]}]
- match: left
  turns:
    - steps: [{tool_calls: [{name: add, arguments: {a: 1, b: 1}, id: c1}]}]
    - steps: [{delay: 0.02}, {text: Left is done with it.}]
- match: right
  turns:
    - steps: [{tool_calls: [{name: add, arguments: {a: 2, b: 2}, id: c1}]}]
    - steps: [{delay: 0.02}, {text: Right is done with it.}]
- match: research
  turns:
    - steps:
        - tool_calls:
            - {name: research, arguments: {topic: bees}, id: r1}
            - {name: research, arguments: {topic: wasps}, id: r2}
    - steps: [{text: All done.}]
- match: sum
  turns:
    - steps:
        - tool_calls:
            - {name: add, arguments: {a: 1, b: 1}, id: s1}
            - {name: add, arguments: {a: 2, b: 2}, id: s2}
    - steps: [{text: All done.}]
- match: go
  turns:
    - steps: [{tool_calls: [{name: add, arguments: {a: 2, b: 3}}]}]
    - steps: [{delay: 0.02}, {text: Five it is then.}]
"""
BEES, WASPS, ANTS = "Bees make honey for us.", "Wasps do not do this.", "Ants are always busy."


async def run_judged(make: Callable[[Any], Any], data: Path, question: str = "go", **options: Any) -> FinishedRun:
    """Run a turn, and compare its log with the state of the graph."""
    judge = StateJudge(make)
    run = await run_agent(judge, SCRIPT, data, question, **options)
    await judge.check(run)
    return run


def branches_of(run: FinishedRun, parent_id: str = "") -> dict[str, AgentStarted]:
    """The branches of an agent, by name and title."""
    started = run.all(AgentStarted, parent_id=parent_id)
    assert all(branch.branch for branch in started)
    found = {f"{branch.name} {branch.title}".strip(): branch for branch in started}
    assert len(found) == len(started), "two branches have the same name and title"
    return found


def texts_of(run: FinishedRun, parent_id: str = "") -> dict[str, str]:
    return {name: run.text(branch.agent_id) for name, branch in branches_of(run, parent_id).items()}


def are_parallel(run: FinishedRun, *started: AgentStarted) -> bool:
    """Whether all branches start before one of them ends."""
    ends = [run.at(run.one(AgentFinished, agent_id=branch.agent_id)) for branch in started]
    return max(run.at(branch) for branch in started) < min(ends)


def steps_of(run: FinishedRun, agent_id: str = "") -> list[tuple[int, str]]:
    ended = run.all(StepFinished, agent_id=agent_id)
    assert all(step.duration_ms is not None for step in ended)
    return [(step.number, step.step_kind) for step in run.all(StepStarted, agent_id=agent_id)]


# Nodes


@pytest.mark.requirement("branches")
async def test_parallel_nodes_are_branches_with_their_own_texts(tmp_path: Path) -> None:
    run = await run_judged(graphs.parallel_nodes, tmp_path)
    assert texts_of(run) == {"bees": BEES, "wasps": WASPS, "ants": ANTS}
    branches = branches_of(run)
    assert are_parallel(run, *branches.values())
    assert {name: steps_of(run, b.agent_id) for name, b in branches.items()} == {n: [(1, n)] for n in branches}
    assert steps_of(run) == [(1, "ants"), (2, "end")]  # the tasks of a step are in alphabetical order
    deltas = [event.agent_id for event in run.all(TextDelta) if event.agent_id]
    assert len([1 for at, agent_id in enumerate(deltas[1:]) if agent_id != deltas[at]]) > 2, (
        "they do not stream at once"
    )
    assert run.text() == run.answer == "All done."
    assert run.one(FinalAnswer).message_id is not None


async def test_answer_that_a_branch_has_streamed_is_the_answer_of_the_run(tmp_path: Path) -> None:
    builder = graphs.StateGraph(graphs.MessagesState)

    def make(endpoint: Any) -> Any:
        for name in ("bees", "wasps"):
            builder.add_node(name, graphs.asking(endpoint, name))
            builder.add_edge(graphs.START, name)
        return builder

    run = await run_judged(make, tmp_path)
    assert texts_of(run) == {"bees": BEES, "wasps": WASPS}
    assert (run.text(), run.answer, run.one(FinalAnswer).message_id) == ("", WASPS, None)


async def test_usage_belongs_to_the_branch_that_used_the_model(tmp_path: Path) -> None:
    run = await run_judged(graphs.parallel_nodes, tmp_path)
    for branch in branches_of(run).values():
        (step,) = run.all(StepFinished, agent_id=branch.agent_id)
        assert step.output_tokens


# Send


@pytest.mark.requirement("branches")
async def test_send_branches_have_their_main_argument_as_title(tmp_path: Path) -> None:
    run = await run_judged(graphs.map_reduce, tmp_path)
    assert texts_of(run) == {"write bees": BEES, "write wasps": WASPS, "write ants": ANTS}
    assert are_parallel(run, *branches_of(run).values())
    assert steps_of(run) == [(1, "plan"), (2, "write"), (3, "join")]
    assert run.answer == "All done."


@pytest.mark.parametrize(
    ("payloads", "titles"),
    [
        (("bees", "wasps"), ["bees", "wasps"]),
        (({"topic": "bees"}, {"topic": "bees"}), ["1", "2"]),
        (({"topic": "bees", "n": 1}, {"topic": "bees", "n": 2}, {"topic": "bees", "n": 2}), ["1", "2", "2 (2)"]),
        (({"section": graphs.Section(name="bees")}, {"section": graphs.Section(name="wasps")}), ["bees", "wasps"]),
        (({"topic": "bees", "messages": []}, {"topic": "wasps", "messages": []}), ["bees", "wasps"]),
    ],
)
async def test_titles_of_branches_are_the_values_in_which_they_differ(
    tmp_path: Path, payloads: Any, titles: list[str]
) -> None:
    run = await run_judged(lambda endpoint: graphs.map_reduce(endpoint, *payloads), tmp_path)
    assert [branch.title for branch in run.all(AgentStarted)] == titles


async def test_branches_of_several_nodes_have_titles_of_their_own(tmp_path: Path) -> None:
    run = await run_judged(graphs.two_kinds, tmp_path)
    assert [(branch.name, branch.title) for branch in run.all(AgentStarted)] == [
        ("read", "a.txt"), ("read", "b.txt"), ("search", "bees"), ("search", "wasps"), ("plain", ""),
    ]  # fmt: skip


async def test_single_send_is_a_step_and_no_branch(tmp_path: Path) -> None:
    run = await run_judged(lambda endpoint: graphs.map_reduce(endpoint, "bees"), tmp_path)
    assert not run.all(AgentStarted)
    assert steps_of(run) == [(1, "plan"), (2, "write"), (3, "join")]


async def test_workers_of_an_orchestrator_have_their_own_tools(tmp_path: Path) -> None:
    run = await run_judged(graphs.orchestrator, tmp_path)
    assert texts_of(run) == {"work bees": BEES, "work wasps": WASPS}
    for name, result in (("work bees", "1"), ("work wasps", "2")):
        (call,) = run.all(ToolStarted, agent_id=branches_of(run)[name].agent_id)
        assert run.one(ToolFinished, call_id=call.call_id).result == result


async def test_tasks_that_execute_calls_belong_to_these_calls(tmp_path: Path) -> None:
    run = await run_judged(graphs.researchers, tmp_path, "research")
    branches = run.all(AgentStarted)
    assert {(branch.name, branch.call_id, run.text(branch.agent_id)) for branch in branches} == {
        ("find", "r1", BEES),
        ("find", "r2", WASPS),
    }
    assert [run.one(ToolFinished, call_id=c).result for c in ("r1", "r2")] == [f"report: {BEES}", f"report: {WASPS}"]


# Tools


async def test_tools_that_parallel_nodes_run_belong_to_their_branches(tmp_path: Path) -> None:
    run = await run_judged(graphs.direct_tools, tmp_path)
    for name, branch in branches_of(run).items():
        (call,) = run.all(ToolStarted, agent_id=branch.agent_id)
        expected = "3" if name == "right" else "2"
        assert run.one(ToolFinished, call_id=call.call_id).result == expected
        assert run.text(branch.agent_id) == f"It is {expected}."


async def test_calls_of_branches_end_with_the_results_of_later_nodes(tmp_path: Path) -> None:
    """Both models give their calls the same id."""
    run = await run_judged(graphs.two_loops, tmp_path)
    for side, result in (("left", "2"), ("right", "4")):
        branches = [branch for branch in run.all(AgentStarted) if branch.name == f"{side}_think"]
        (call,) = [call for branch in branches for call in run.all(ToolStarted, agent_id=branch.agent_id)]
        assert (run.one(ToolFinished, call_id=call.call_id).result, call.name) == (result, "add")
        assert [run.text(branch.agent_id) for branch in branches] == ["", f"{side.title()} is done with it."]


# Subgraphs


async def test_parallel_subgraphs_are_branches_with_their_own_steps(tmp_path: Path) -> None:
    run = await run_judged(graphs.parallel_subgraphs, tmp_path)
    branches = branches_of(run)
    assert sorted(branches) == ["lefty", "plain", "right"]
    assert texts_of(run) == {"lefty": "Five it is then.", "right": "Five it is then.", "plain": "I am plain."}
    for name in ("lefty", "right"):
        assert steps_of(run, branches[name].agent_id) == [(1, "action"), (2, "action")]
        (call,) = run.all(ToolStarted, agent_id=branches[name].agent_id)
        assert run.one(ToolFinished, call_id=call.call_id).result == "5"


async def test_branches_of_a_subgraph_are_inside_of_its_branch(tmp_path: Path) -> None:
    run = await run_judged(graphs.nested_subgraphs, tmp_path)
    branches = branches_of(run)
    assert sorted(branches) == ["inner", "outer"]
    inner = branches["inner"].agent_id
    assert texts_of(run, inner) == {"write bees": BEES, "write wasps": WASPS, "write ants": ANTS}
    assert run.text(inner) == "I plan.All done."
    assert run.text(branches["outer"].agent_id) == "I am outside of it."


async def test_agents_that_parallel_functions_run_are_their_branches(tmp_path: Path) -> None:
    run = await run_judged(graphs.agents_in_functions, tmp_path)
    assert texts_of(run) == {"left": "Left is done with it.", "right": "Right is done with it."}
    assert len(run.all(ToolStarted)) == 2
    assert not run.all(ToolStarted, agent_id="")


async def test_messages_for_the_parent_are_shown_once(tmp_path: Path) -> None:
    run = await run_judged(graphs.to_parent, tmp_path)
    assert sorted(branches_of(run)) == ["left", "right"]
    assert run.answer == "All done."


# Functions


@pytest.mark.requirement("branches")
async def test_functions_are_steps_and_parallel_functions_are_branches(tmp_path: Path) -> None:
    run = await run_agent(graphs.functional, SCRIPT, tmp_path)
    assert isinstance(run.terminal, RunFinished), run.terminal
    assert texts_of(run) == {"write bees": BEES, "write wasps": WASPS}
    assert steps_of(run) == [
        (1, "report"), (2, "outline"), (3, "write"), (4, "review"), (5, "review"), (6, "report"),
    ]  # fmt: skip
    assert run.text() == "bees, waspsNot good.Good.Polished."
    assert run.answer == f"{BEES} {WASPS}"


async def test_agent_of_functions_shows_each_call_once(tmp_path: Path) -> None:
    run = await run_judged(graphs.functional_agent, tmp_path, "sum")
    assert {f.call_id: f.result for f in run.all(ToolFinished)} == {"s1": "2", "s2": "4"}
    assert {call.agent_id for call in run.all(ToolStarted)} == {""}
    assert not run.all(AgentStarted)
    assert run.answer == run.text() == "All done."
    assert run.one(FinalAnswer).message_id is not None


async def test_functions_in_functions_have_their_own_texts(tmp_path: Path) -> None:
    run = await run_agent(graphs.nested_functions, SCRIPT, tmp_path)
    assert isinstance(run.terminal, RunFinished), run.terminal
    branches = branches_of(run)
    assert texts_of(run) == {
        "outer bees": "", "outer wasps": "", "delegate left": "Left is done with it.", "ask bees": BEES,
        "ask wasps": WASPS,
    }  # fmt: skip
    noted = {status.agent_id: status.text for status in run.all(Status)}
    assert noted == {branches["outer bees"].agent_id: "about bees", branches["outer wasps"].agent_id: "about wasps"}


async def test_functions_of_parallel_nodes_have_their_own_texts(tmp_path: Path) -> None:
    run = await run_judged(graphs.functions_of_nodes, tmp_path)
    said = {(b.name, b.title): run.text(b.agent_id) for b in run.all(AgentStarted)}
    assert said == {("left", ""): "", ("right", ""): "", ("ask", "bees"): BEES, ("ask", "wasps"): WASPS}


# Usual shapes


@pytest.mark.requirement("state-in-log")
@pytest.mark.parametrize(
    ("make", "texts", "answer"),
    [
        (graphs.evaluator, ["The first draft.", "Not good.", "The second draft.", "Good."], "Good."),
        (graphs.router, ["wasps", WASPS], WASPS),
        (graphs.overwriting, [BEES, "A new one.", "Another one.", "All done."], "All done."),
        (graphs.removing, [BEES, "I removed one.", "I removed all.", "All done."], "All done."),
        (graphs.changing, [BEES, "I was changed.", "All done."], "All done."),
        (graphs.private_channels, [BEES, "I know 1."], "I know 1."),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
async def test_sequential_graph_shows_every_message_once(
    tmp_path: Path, make: Any, texts: list[str], answer: str
) -> None:
    run = await run_judged(make, tmp_path)
    assert not run.all(AgentStarted)
    assert [
        "".join(d.text for d in run.all(TextDelta, message_id=e.message_id)) for e in run.all(TextFinished)
    ] == texts
    assert run.answer == answer
    assert run.one(FinalAnswer).message_id is not None


@pytest.mark.parametrize("make", [graphs.added_in_parallel, graphs.deferred, graphs.retrying])
async def test_parallel_graph_shows_every_message_once(tmp_path: Path, make: Any) -> None:
    run = await run_judged(make, tmp_path)
    assert are_parallel(run, *branches_of(run).values())
    assert run.answer == "All done."


async def test_changed_value_of_the_input_key_is_the_answer(tmp_path: Path) -> None:
    graph = graphs.chain(graphs.Pair, only=lambda state: {"changeme": f"not {state['changeme']}"})
    async with serve_agent(lambda _: graph, "", tmp_path) as server:
        assert (await server.run("this", session_id="a")).answer == "not this"
        assert (await server.run("that", session_id="a")).answer == "not that"


async def test_unchanged_value_of_the_input_key_is_not_an_answer(tmp_path: Path) -> None:
    graph = graphs.chain(graphs.Pair, only=lambda _: {})
    assert (await run_agent(lambda _: graph, "", tmp_path)).answer == ""


async def test_cached_results_are_shown_in_each_turn(tmp_path: Path) -> None:
    judge = StateJudge(graphs.caching)
    async with serve_agent(judge, SCRIPT, tmp_path) as server:
        for turn in (1, 2):
            run = await server.run("go", session_id=f"session-{turn}")
            assert isinstance(run.terminal, RunFinished), run.terminal
            assert run.text() == f"{BEES}I say.All done.", turn
            assert steps_of(run) == [(1, "bees"), (2, "saying"), (3, "end")]
            assert not run.all(AgentStarted)


# Failures and questions


async def test_branch_that_fails_ends_with_the_error(tmp_path: Path) -> None:
    run = await run_agent(graphs.failing, SCRIPT, tmp_path)
    assert isinstance(run.terminal, RunFailed)
    failed = run.one(AgentFinished, agent_id=branches_of(run)["fails"].agent_id)
    assert "no bees" in (failed.error or "")


async def test_branches_that_ask_continue_after_the_answers(tmp_path: Path) -> None:
    judge = StateJudge(graphs.stopping)
    run = await run_agent(judge, SCRIPT, tmp_path, decide=lambda _: {"decision": "approve"})
    await judge.check(run)
    branches = branches_of(run)
    assert sorted(branches) == ["one", "plain", "two"]
    asked = {request.agent_id for request in run.all(ApprovalRequested)}
    assert asked == {branches["one"].agent_id, branches["two"].agent_id}
    assert texts_of(run) == {"one": "one: True", "two": "two: True", "plain": "I am."}
    assert steps_of(run) == [(1, "one"), (2, "end")]


async def test_branches_that_ask_continue_after_a_restart(tmp_path: Path) -> None:
    """The graph reports the start of the branch that has ended again."""
    case = Case(graphs.stopping, "")
    before = await suspended(case, tmp_path, 2)
    run = await resumed(case, tmp_path, before, lambda _: {"decision": "approve"})
    assert isinstance(run.terminal, RunFinished), run.terminal
    assert texts_of(run) == {"one": "one: True", "two": "two: True", "plain": "I am."}


async def test_functions_that_ask_continue_after_the_answers(tmp_path: Path) -> None:
    run = await run_agent(graphs.asking_functions, SCRIPT, tmp_path, decide=lambda _: {"decision": "approve"})
    assert isinstance(run.terminal, RunFinished), run.terminal
    assert run.answer == "True done True"
    assert len(run.all(ApprovalRequested)) == 2
    assert sorted(branches_of(run)) == ["ask one", "ask two", "plain"]


async def test_stop_ends_all_branches(tmp_path: Path) -> None:
    run = await run_agent(
        graphs.map_reduce,
        SCRIPT.replace("delay: 0.04", "delay: 2"),
        tmp_path,
        stop_at=lambda event: isinstance(event, TextDelta) and bool(event.agent_id),
    )
    assert isinstance(run.terminal, RunCancelled)
    assert [step.error for step in run.all(StepFinished) if step.agent_id] == ["stopped"] * 3
