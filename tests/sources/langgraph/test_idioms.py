# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false, reportUnknownLambdaType=false
"""LangGraph: idioms of real projects. Each log is compared with everything that the graph has written to its state."""

from functools import partial
from pathlib import Path
from typing import Any

import pytest

from limelight.events import AgentStarted, ApprovalRequested, Status, ToolStarted
from tests.sources.langgraph import idiom_graphs as graphs
from tests.sources.langgraph.state_judge import StateJudge
from tests.sources.live_turn import FinishedRun, run_agent

SCRIPT = """
- match: "route: json"
  turns: [{steps: [{text: '{"step": "poem"}'}]}]
- match: "route: function_calling"
  turns: [{steps: [{tool_calls: [{name: Route, arguments: {step: poem}, id: r1}]}]}]
- match: "supervise: 1"
  turns: [{steps: [{text: '{"step": "poem"}'}]}]
- match: "supervise: 2"
  turns: [{steps: [{text: '{"step": "END"}'}]}]
- match: "add: once"
  turns:
    - steps: [{tool_calls: [{name: add, arguments: {a: 2, b: 3}, id: c1}]}]
    - steps: [{text: It is five.}]
- match: "command: all"
  turns:
    - steps:
        - text: I use them all.
        - tool_calls:
            - {name: look_up, arguments: {name: Ann}, id: c1}
            - {name: count_messages, arguments: {}, id: c2}
            - {name: nothing, arguments: {}, id: c3}
            - {name: fail, arguments: {reason: no such file}, id: c4}
            - {name: fail, arguments: {}, id: c5}
            - {name: unknown, arguments: {}, id: c6}
            - {name: leave, arguments: {}, id: c7}
- match: hand over
  turns:
    - steps: [{text: Over to Bob.}, {tool_calls: [{name: to_bob, arguments: {}, id: h1}]}]
    - steps: [{text: Over to the worker.}, {tool_calls: [{name: to_worker, arguments: {}, id: h2}]}]
- match: review
  turns:
    - steps: [{text: I add.}, {tool_calls: [{name: add, arguments: {a: 2, b: 3}, id: c1}]}]
    - steps: [{text: It is fifty.}]
- match: "write: an edge"
  turns: [{steps: [{text: To the parser.}]}]
- match: "write: quietly"
  turns: [{steps: [{text: Hush.}]}]
- match: "write: left"
  turns: [{steps: [{text: A left line.}]}]
- match: "write: right"
  turns: [{steps: [{text: A right line.}]}]
- match: "write: parsed"
  turns: [{steps: [{text: A parsed line.}]}]
- match: "joke: cats"
  turns: [{steps: [{text: Cats are late.}]}]
- match: "joke: dogs"
  turns: [{steps: [{text: Dogs are early.}]}]
- match: "polish: cats"
  turns: [{steps: [{text: Cats are very late.}]}]
- match: "polish: dogs"
  turns: [{steps: [{text: Dogs are very early.}]}]
- turns: [{steps: [{text: A line of verse.}]}]
"""


async def run_judged(make: Any, data: Path, question: str = "go", **options: Any) -> FinishedRun:
    judge = StateJudge(make)
    run = await run_agent(judge, SCRIPT, data, question, **options)
    await judge.check(run)
    return run


@pytest.mark.parametrize(
    ("make", "answer"),
    [
        (graphs.window, "Three."),
        (graphs.two_keys, "So: It is five."),
        (graphs.update_forms, "A block."),
        (graphs.pushing, "Returned."),
        (graphs.trimming, "Renamed."),
        (graphs.models_everywhere, "A line of verse."),
        (graphs.commanding, "The end."),
        (graphs.inner_graphs, "6: A line of verse."),
        (graphs.mapped_subgraphs, "Best: Dogs are very early."),
        (graphs.nested_dicts, "All done."),
        (graphs.saving_more, "It is five."),
    ],
)
async def test_log_has_what_the_graph_has_written(tmp_path: Path, make: Any, answer: str) -> None:
    run = await run_judged(make, tmp_path)
    assert run.answer == answer


async def test_handoffs_show_each_agent_with_its_own_messages(tmp_path: Path) -> None:
    run = await run_judged(graphs.handing_on, tmp_path, "hand over")
    texts = {agent.name: run.text(agent.agent_id) for agent in run.all(AgentStarted)}
    assert texts == {"alice": "Over to Bob.", "bob": "Over to the worker.", "worker": "It is five."}
    assert run.answer == "It is five."


async def test_graphs_call_each_other_with_the_default_checkpointer(tmp_path: Path) -> None:
    run = await run_agent(graphs.inner_graphs, SCRIPT, tmp_path)
    assert run.answer == "6: A line of verse."


# Structured output


@pytest.mark.parametrize("method", ["json_schema", "json_mode", "function_calling"])
async def test_structured_output_for_a_node_is_reasoning_and_no_speech(tmp_path: Path, method: str) -> None:
    run = await run_judged(graphs.routed(method), tmp_path)
    assert (run.reasoning(), run.text()) == ('{"step": "poem"}', "A line of verse.")
    assert run.all(ToolStarted) == []
    assert run.answer == "A line of verse."


async def test_structured_output_that_a_node_returns_is_a_message(tmp_path: Path) -> None:
    run = await run_judged(graphs.raw_output, tmp_path)
    assert run.text() == '{"step": "poem"}Decided.'


async def test_report_of_a_worker_is_the_answer_of_its_supervisor(tmp_path: Path) -> None:
    run = await run_judged(graphs.supervised_reports, tmp_path)
    assert run.answer == "It is five."
    assert run.text() == ""


# Changed calls


@pytest.mark.parametrize(
    "make",
    [
        graphs.reviewed,
        partial(graphs.reviewed, by_hand=True),
        partial(graphs.reviewed, as_object=True),
        graphs.edited_by_a_middleware,
    ],
)
async def test_call_that_a_node_has_changed_is_shown_as_it_ran(tmp_path: Path, make: Any) -> None:
    run = await run_judged(make, tmp_path, "review")
    assert len(run.all(ToolStarted)) == 1
    assert (run.call("add").args, run.call("add").result) == ({"a": 20, "b": 30}, "50")


@pytest.mark.parametrize("by_hand", [False, True])
async def test_call_that_was_shown_to_a_person_and_changed_is_another_call(tmp_path: Path, by_hand: bool) -> None:
    def approve(_: ApprovalRequested) -> dict[str, Any]:
        return {"decision": "approve"}

    def make(endpoint: Any) -> Any:
        return graphs.reviewed(endpoint, asks=True, by_hand=by_hand)

    run = await run_judged(make, tmp_path, "review", decide=approve)
    first, second = run.call("add", 0), run.call("add", 1)
    assert len(run.all(ToolStarted)) == 2
    assert (first.args, first.finished.result_seen, first.error) == ({"a": 2, "b": 3}, False, None)
    assert (second.args, second.result) == ({"a": 20, "b": 30}, "50")


# What code writes to the stream


async def test_what_a_task_writes_belongs_to_its_branch(tmp_path: Path) -> None:
    run = await run_judged(graphs.writing, tmp_path)
    names = {agent.agent_id: f"{agent.name} {agent.title}".strip() for agent in run.all(AgentStarted)}
    said = {status.text: names.get(status.agent_id, "") for status in run.all(Status)}
    assert said == {
        "node left": "left",
        "tool in left": "left",
        '{"percent":20,"at":"node right"}': "right",
        "node inner": "inner",
        "work 1": "work 1",
        "work 2": "work 2",
    }
    assert run.answer == "Read: ['node inner']"
