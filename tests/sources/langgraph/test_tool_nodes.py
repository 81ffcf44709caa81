# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false, reportUnknownLambdaType=false
"""LangGraph: nodes that run tools themselves. The log is compared with the final state of the graph."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage, BaseMessage, ToolMessage, convert_to_messages

from limelight.events import (
    AgentStarted,
    RunCancelled,
    RunFailed,
    RunFinished,
    TextDelta,
    ToolFinished,
    ToolReady,
    ToolStarted,
)
from tests.sources.langgraph import tool_node_graphs as graphs
from tests.sources.langgraph.langgraph_scenarios import answering
from tests.sources.langgraph.state_judge import StateJudge
from tests.sources.live_turn import FinishedRun, ModelEndpoint, run_agent, serve_agent

ONE = answering("- steps: [{tool_calls: [{name: add, arguments: {a: 2, b: 3}, id: c1}]}]")
TWO = answering(
    "- steps: [{tool_calls: [{name: add, arguments: {a: 2, b: 3}, id: c1},"
    " {name: weather, arguments: {city: Oslo}, id: c2}]}]"
)
SAME = answering(
    "- steps: [{tool_calls: [{name: add, arguments: {a: 2, b: 3}, id: c1},"
    " {name: add, arguments: {a: 2, b: 3}, id: c2}]}]"
)
OTHERS = answering(
    "- steps: [{tool_calls: [{name: add, arguments: {a: 2, b: 3}, id: c1},"
    " {name: add, arguments: {a: 20, b: 30}, id: c2}]}]"
)
TWICE = answering(
    "- steps: [{tool_calls: [{name: add, arguments: {a: 2, b: 3}, id: c1}]}]",
    "- steps: [{text: Once more.}, {tool_calls: [{name: add, arguments: {a: 2, b: 3}, id: c2}]}]",
)
FAILING = answering("- steps: [{tool_calls: [{name: fail, arguments: {reason: no such file}, id: c1}]}]")


class Kept:
    """A graph with a final state that the test reads."""

    def __init__(self, make: Callable[[ModelEndpoint], Any]) -> None:
        self.judge = StateJudge(make)

    def __call__(self, endpoint: ModelEndpoint) -> Any:
        return self.judge(endpoint)

    async def messages(self) -> list[BaseMessage]:
        (thread_id,) = self.judge.saver.storage
        state = await self.judge.graph.aget_state({"configurable": {"thread_id": thread_id}})
        return convert_to_messages([*state.values["messages"], *state.values.get("results", [])])


async def run_and_compare(make: Callable[[ModelEndpoint], Any], script: str, data: Path) -> FinishedRun:
    """Run a turn, and check that each call in the final state is shown once with its result."""
    kept = Kept(make)
    async with serve_agent(kept, script, data) as server:
        run = await server.run()
        assert_matches_state(run, await kept.messages())
        await kept.judge.check(run)
    return run


def assert_matches_state(run: FinishedRun, messages: list[BaseMessage]) -> None:
    assert isinstance(run.terminal, RunFinished), run.terminal
    calls = [call for message in messages if isinstance(message, AIMessage) for call in message.tool_calls]
    results = {message.tool_call_id: message for message in messages if isinstance(message, ToolMessage)}
    assert [started.call_id for started in run.all(ToolStarted)] == [call["id"] for call in calls]
    for number, call in enumerate(calls):
        started = run.all(ToolStarted)[number]
        shown = run.call(started.name, [s.name for s in run.all(ToolStarted)[:number]].count(started.name))
        assert (started.name, shown.args) == (call["name"], call["args"])
        if call["id"] in results:
            message = results[call["id"]]
            assert (shown.result, shown.error is not None) == (message.content, message.status == "error")
            assert shown.finished.result_seen
        else:
            assert (shown.error, shown.finished.result_seen) == (None, False)


# Each form of a result


@pytest.mark.parametrize(
    "act",
    [
        graphs.by_args(graphs.message_of),
        graphs.by_args(graphs.dict_of),
        graphs.by_args(graphs.typed_dict_of),
        graphs.by_args(graphs.envelope_of),
        graphs.by_args(graphs.dumped_message_of),
        graphs.by_call,
        graphs.by_args_sync,
        graphs.in_a_pool,
        graphs.in_a_bare_pool,
        graphs.gathered,
        graphs.as_command,
        graphs.as_commands,
    ],
    ids=lambda act: getattr(act, "__qualname__", ""),
)
@pytest.mark.parametrize("script", [ONE, SAME, TWICE], ids=["one", "same", "twice"])
async def test_tool_that_a_node_runs_is_shown_once_with_its_result(tmp_path: Path, act: Any, script: str) -> None:
    run = await run_and_compare(graphs.looping(act), script, tmp_path)
    assert all(finished.result in ("5", '"5"') for finished in run.all(ToolFinished))
    assert run.answer == "All done."


@pytest.mark.parametrize("make", [graphs.looping(graphs.alone), graphs.other_key, graphs.tuples_of_functions])
async def test_result_alone_or_under_another_key_ends_its_call(tmp_path: Path, make: Any) -> None:
    kept = Kept(make)
    run = await run_agent(kept, ONE, tmp_path)
    assert len(run.all(ToolStarted)) == 1
    assert (run.call("add").result, run.call("add").error, run.call("add").finished.result_seen) == ("5", None, True)


@pytest.mark.parametrize("make", [graphs.tuples, graphs.tuples_of_functions])
async def test_results_as_tuples_end_the_calls_in_their_order(tmp_path: Path, make: Any) -> None:
    script = (
        "- steps: [{tool_calls: [{name: add, arguments: {a: 2, b: 3}, id: c1},"
        " {name: add, arguments: {a: 20, b: 30}, id: c2}]}]"
    )
    run = await run_agent(make, script, tmp_path)
    assert isinstance(run.terminal, RunFinished), run.terminal
    assert [(s.call_id, s.name) for s in run.all(ToolStarted)] == [("c1", "add"), ("c2", "add")]
    assert [(f.call_id, f.result, f.error) for f in run.all(ToolFinished)] == [("c1", "5", None), ("c2", "50", None)]
    assert run.answer == run.text() == "All done."


@pytest.mark.parametrize("act", [graphs.plain_function, graphs.plain_function_dict])
async def test_call_of_a_plain_function_ends_with_its_message(tmp_path: Path, act: Any) -> None:
    run = await run_and_compare(graphs.looping(act), SAME, tmp_path)
    assert [finished.result for finished in run.all(ToolFinished)] == ["5", "5"]


async def test_run_with_added_arguments_is_matched(tmp_path: Path) -> None:
    script = answering("- steps: [{tool_calls: [{name: slow, arguments: {name: x}, id: c1}]}]")
    run = await run_and_compare(graphs.looping(graphs.with_more_arguments), script, tmp_path)
    assert run.call("slow").result == "x is done"


async def test_result_of_a_tool_that_returns_an_object_is_its_message(tmp_path: Path) -> None:
    run = await run_and_compare(graphs.looping(graphs.by_args(graphs.dumped_message_of)), TWO, tmp_path)
    assert run.call("weather").result == '{"city": "Oslo", "degrees": 21}'


async def test_equal_parallel_calls_have_their_own_durations(tmp_path: Path) -> None:
    script = answering(
        "- steps: [{tool_calls: [{name: slow, arguments: {name: x, seconds: 0.05}, id: c1},"
        " {name: slow, arguments: {name: x, seconds: 0.05}, id: c2},"
        " {name: slow, arguments: {name: y, seconds: 0.6}, id: c3}]}]"
    )
    run = await run_and_compare(graphs.looping(graphs.gathered), script, tmp_path)
    first, second, third = (run.call("slow", number).finished.duration_ms or 0 for number in range(3))
    assert max(first, second) < 500 <= third


# Runs that differ from their calls


async def test_run_with_converted_arguments_is_matched(tmp_path: Path) -> None:
    script = answering(
        "- steps: [{tool_calls: [{name: add, arguments: {a: '2', b: '3'}, id: c1},"
        " {name: add, arguments: {a: '7', b: '3'}, id: c2}]}]"
    )
    run = await run_and_compare(graphs.looping(graphs.with_converted_arguments), script, tmp_path)
    assert [finished.result for finished in run.all(ToolFinished)] == ["sum: 5", "sum: 10"]


async def test_run_with_arguments_of_another_type_is_matched(tmp_path: Path) -> None:
    script = answering("- steps: [{tool_calls: [{name: count, arguments: {items: 'a, b'}, id: c1}]}]")
    run = await run_and_compare(graphs.looping(graphs.with_parsed_arguments), script, tmp_path)
    assert run.call("count").result == "count: 2"


async def test_tool_with_another_name_than_its_call_is_matched(tmp_path: Path) -> None:
    script = answering(
        "- steps: [{tool_calls: [{name: sum, arguments: {a: 2, b: 3}, id: c1},"
        " {name: sum, arguments: {a: 2, b: 3}, id: c2}, {name: forecast, arguments: {city: Oslo}, id: c3}]}]"
    )
    run = await run_and_compare(graphs.looping(graphs.with_renamed_tools), script, tmp_path)
    assert [finished.result for finished in run.all(ToolFinished)][:2] == ["it is 5", "it is 5"]


async def test_helper_tool_with_the_arguments_of_a_call_is_a_call_of_its_own(tmp_path: Path) -> None:
    run = await run_agent(graphs.looping(graphs.with_a_check_of_the_arguments), ONE, tmp_path)
    assert isinstance(run.terminal, RunFinished), run.terminal
    assert sorted(started.name for started in run.all(ToolStarted)) == ["add", "multiply"]
    assert (run.call("add").result, run.call("multiply").result) == ("sum: 5", 6)


async def test_calls_without_ids_end_each_with_its_result(tmp_path: Path) -> None:
    run = await run_agent(graphs.calls_without_ids, "", tmp_path)
    assert isinstance(run.terminal, RunFinished), run.terminal
    assert [started.args for started in run.all(ToolStarted)] == [{"a": 2, "b": 3}, {"a": 7, "b": 3}]
    assert [(f.result, f.error) for f in run.all(ToolFinished)] == [("sum: 5", None), ("sum: 10", None)]


# Tasks that run at once


@pytest.mark.parametrize(
    "payload", [graphs.call_alone, graphs.call_with_messages, graphs.call_in_depth, graphs.call_as_text]
)
@pytest.mark.parametrize(
    "steps",
    [
        "run c1, run c2, end c2, end c1",
        "run c2, run c1, end c2, end c1",
        "run c2, end c2, run c1, end c1",
        "run c1, end c1, run c2, end c2",
    ],
)
@pytest.mark.parametrize("script", [SAME, OTHERS], ids=["same", "others"])
async def test_each_task_of_a_fan_out_ends_its_own_call(tmp_path: Path, script: str, steps: str, payload: Any) -> None:
    run = await run_and_compare(lambda endpoint: graphs.fan_out(endpoint, steps, payload), script, tmp_path)
    assert all(finished.duration_ms is not None for finished in run.all(ToolFinished))


# Failures


@pytest.mark.parametrize("form", [graphs.error_message_of, graphs.error_dict_of])
async def test_tool_that_raises_fails_its_call_once(tmp_path: Path, form: Any) -> None:
    run = await run_and_compare(graphs.looping(graphs.catching(form)), FAILING, tmp_path)
    assert run.call("fail").error == "no such file"


async def test_tool_that_raises_fails_its_call_with_any_message(tmp_path: Path) -> None:
    run = await run_agent(graphs.looping(graphs.catching(graphs.dict_of)), FAILING, tmp_path)
    assert len(run.all(ToolStarted)) == 1
    assert (run.call("fail").error, run.call("fail").result) == ("no such file", "no such file")


@pytest.mark.parametrize("act", [graphs.retried_by_args, graphs.retried_by_call, graphs.retried_by_args_together])
@pytest.mark.parametrize("script", [ONE, SAME, OTHERS], ids=["one", "same", "others"])
async def test_tool_that_a_node_retries_in_another_way_is_shown_once(tmp_path: Path, act: Any, script: str) -> None:
    run = await run_and_compare(graphs.looping(act), script, tmp_path)
    assert all(finished.error is None for finished in run.all(ToolFinished))


async def test_node_that_raises_keeps_the_result_of_its_tool(tmp_path: Path) -> None:
    run = await run_agent(graphs.failing_after_the_tool, ONE, tmp_path)
    assert isinstance(run.terminal, RunFailed)
    assert len(run.all(ToolStarted)) == 1
    assert (run.call("add").result, run.call("add").error) == ("5", None)


async def test_stop_keeps_the_result_of_a_tool_that_has_returned(tmp_path: Path) -> None:
    script = answering(
        "- steps: [{tool_calls: [{name: add, arguments: {a: 2, b: 3}, id: c1},"
        " {name: slow, arguments: {name: x, seconds: 60}, id: c2}]}]"
    )
    run = await run_agent(
        graphs.looping(graphs.by_args(graphs.message_of)),
        script,
        tmp_path,
        stop_at=lambda event: isinstance(event, ToolReady) and event.call_id == "c2",
    )
    assert isinstance(run.terminal, RunCancelled)
    assert (run.call("add").result, run.call("add").error) == ("5", None)
    assert run.call("slow").error == "stopped"


# Calls without a result


async def test_call_without_a_result_has_not_failed(tmp_path: Path) -> None:
    run = await run_and_compare(graphs.without_results, ONE, tmp_path)
    finished = run.call("add").finished
    assert (finished.error, finished.result_seen, finished.result) == (None, False, "No result seen")
    assert run.answer == "I did not wait."


# Places


@pytest.mark.parametrize("act", [graphs.by_args(graphs.message_of), graphs.by_args(graphs.dict_of), graphs.by_call])
async def test_subgraph_runs_the_calls_of_its_parent(tmp_path: Path, act: Any) -> None:
    run = await run_and_compare(lambda endpoint: graphs.tools_in_a_subgraph(endpoint, act), SAME, tmp_path)
    assert {started.agent_id for started in run.all(ToolStarted)} == {""}


@pytest.mark.parametrize("act", [graphs.by_args(graphs.message_of), graphs.by_args(graphs.dict_of), graphs.by_call])
async def test_loop_in_a_subgraph_has_its_own_calls(tmp_path: Path, act: Any) -> None:
    run = await run_and_compare(lambda endpoint: graphs.loop_in_a_subgraph(endpoint, act), SAME, tmp_path)
    worker = run.one(AgentStarted)
    assert {started.agent_id for started in run.all(ToolStarted)} == {worker.agent_id}


async def test_loop_in_one_node_shows_each_call_once_and_live(tmp_path: Path) -> None:
    run = await run_and_compare(graphs.one_node_loop, TWICE, tmp_path)
    more = next(event for event in run.all(TextDelta) if event.text.startswith("Once"))
    assert run.at(run.one(ToolFinished, call_id="c1")) < run.at(more)
    assert run.text() == "Once more.All done."


async def test_message_after_the_run_of_its_tool_does_not_show_it_again(tmp_path: Path) -> None:
    kept = Kept(graphs.one_node_without_a_model)
    run = await run_agent(kept, "", tmp_path)
    assert isinstance(run.terminal, RunFinished)
    assert len(run.all(ToolStarted)) == 1
    assert (run.call("add").args, run.call("add").result) == ({"a": 2, "b": 3}, "5")
    assert run.text() == "I add.It is 5."
    assert run.answer == "It is 5."


async def test_task_of_the_functional_api_shows_its_tool_once(tmp_path: Path) -> None:
    run = await run_agent(lambda _: graphs.functional, "", tmp_path)
    assert isinstance(run.terminal, RunFinished)
    assert len(run.all(ToolStarted)) == 1
    assert (run.call("add").args, run.call("add").result) == ({"a": 2, "b": 3}, "5")
    assert run.text() == run.answer == "It is 5."


async def test_node_that_runs_again_after_an_interrupt_shows_both_runs(tmp_path: Path) -> None:
    run = await run_agent(graphs.asking_after_the_tool, ONE, tmp_path, decide=lambda _: {"decision": "approve"})
    assert isinstance(run.terminal, RunFinished), run.terminal
    assert [(f.result, f.error) for f in run.all(ToolFinished)] == [("5", None), ("5", None)]


# Messages of the assistant


@pytest.mark.parametrize("schema", [graphs.MessagesState, graphs.AddedState])
async def test_assistant_messages_in_every_form_are_shown_once(tmp_path: Path, schema: Any) -> None:
    script = "- steps: [{text: I think.}]"
    run = await run_agent(lambda endpoint: graphs.with_dict_messages(endpoint, schema), script, tmp_path)
    assert isinstance(run.terminal, RunFinished)
    assert texts_of(run) == ["I begin.", "I think.", "I proceed.", "I end."]
    assert run.answer == "I end."


async def test_messages_of_the_input_are_not_shown_again(tmp_path: Path) -> None:
    script = "- steps: [{text: I think.}]"
    async with serve_agent(graphs.with_whole_lists, script, tmp_path) as server:
        for _ in range(2):
            run = await server.run("go", session_id="a")
            assert isinstance(run.terminal, RunFinished)
            assert texts_of(run) == ["And more.", "I think.", "And more."]


async def test_message_that_a_subgraph_returns_is_shown_once(tmp_path: Path) -> None:
    run = await run_and_compare(graphs.dicts_in_a_subgraph, "", tmp_path)
    worker = run.one(AgentStarted)
    assert (run.text(worker.agent_id), run.text()) == ("I add.", "It is 5.")
    assert run.one(ToolStarted).agent_id == worker.agent_id


def texts_of(run: FinishedRun) -> list[str]:
    texts: dict[str, str] = {}
    for event in run.all(TextDelta):
        texts[event.message_id] = texts.get(event.message_id, "") + event.text
    return list(texts.values())


# The graph of a tutorial


async def test_graph_of_a_tutorial_shows_each_call_once(tmp_path: Path) -> None:
    script = answering(
        "- steps: [{tool_calls: [{name: add, arguments: {a: 3, b: 4}, id: c1},"
        " {name: multiply, arguments: {a: 2, b: 6}, id: c2}]}]",
        "- steps: [{tool_calls: [{name: multiply, arguments: {a: 7, b: 12}, id: c3}]}]",
    )
    run = await run_and_compare(graphs.tutorial, script, tmp_path)
    assert [(f.call_id, f.result) for f in run.all(ToolFinished)] == [("c1", "7"), ("c2", "12"), ("c3", "84")]
    assert run.answer == "All done."


# A supervisor and its workers


async def test_workers_of_a_node_show_their_tools_once(tmp_path: Path) -> None:
    script = """
- match: "work:"
  turns:
    - steps: [{tool_calls: [{name: add, arguments: {a: 2, b: 3}}, {name: slow, arguments: {name: x, seconds: 0.05}}]}]
    - steps: [{text: Found it.}]
- turns:
    - steps:
        - tool_calls:
            - {name: delegate, arguments: {topic: one}, id: d1}
            - {name: delegate, arguments: {topic: two}, id: d2}
    - steps: [{text: All done.}]
"""
    run = await run_agent(graphs.supervised, script, tmp_path)
    assert isinstance(run.terminal, RunFinished), run.terminal
    assert [(f.result, f.error) for f in run.all(ToolFinished, agent_id="")] == [("Found it.", None)] * 2
    workers = run.all(AgentStarted)
    assert len(workers) == 2
    for worker in workers:
        results = [(f.result, f.error) for f in run.all(ToolFinished, agent_id=worker.agent_id)]
        assert results == [("5", None), ("x is done", None)]
        assert run.text(worker.agent_id) == "Found it."
    assert len(run.all(ToolStarted)) == 6
    assert (run.text(), run.answer) == ("All done.Reported.", "Reported.")
