"""LangGraph: hand-written graphs of many shapes."""
# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownLambdaType=false, reportUnknownArgumentType=false

import asyncio
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.sqlite import SqliteSaver

from limelight.events import (
    AgentFinished,
    AgentStarted,
    FinalAnswer,
    Plan,
    RunFailed,
    RunFinished,
    StepStarted,
    TextDelta,
    TextFinished,
    ToolStarted,
)
from tests.sources.langgraph import graphs as graphs
from tests.sources.langgraph.langgraph_scenarios import answering, small_graph
from tests.sources.live_turn import FinishedRun, run_agent, serve_agent
from tests.sources.recorded_requests import Requests, conversation_in
from tests.support.server import offer, serving

TALK = """
- match: one
  turns: [{steps: [{delay: 0.02}, {text: First things first.}]}]
- match: two
  turns: [{steps: [{delay: 0.01}, {text: Second.}]}]
- match: o
  turns: [{steps: [{text: I see.}]}]
"""


def assert_answer_was_streamed(run: FinishedRun) -> None:
    """Check that the answer names the message that has streamed it."""
    assert isinstance(run.terminal, RunFinished), run.terminal
    answer = run.one(FinalAnswer)
    assert answer.message_id is not None
    assert "".join(e.text for e in run.all(TextDelta, message_id=answer.message_id)) == answer.content


async def test_node_that_calls_a_model_streams_its_reply(tmp_path: Path, requests: Requests) -> None:
    async with serve_agent(graphs.chatting, TALK, tmp_path) as server:
        run = await server.run("hello", session_id="a")
        assert_answer_was_streamed(run)
        assert run.text() == "I see."
        assert_answer_was_streamed(await server.run("go on", session_id="a"))
    assert conversation_in(requests[-1]) == [("user", "hello"), ("assistant", "I see."), ("user", "go on")]


async def test_message_that_a_node_returns_is_shown(tmp_path: Path) -> None:
    async with serve_agent(graphs.greeting, "", tmp_path) as server:
        for _ in range(2):
            run = await server.run(session_id="a")
            assert_answer_was_streamed(run)
            assert run.text() == "hi"


async def test_subgraph_is_a_sub_agent_that_ends_with_its_node(tmp_path: Path) -> None:
    script = "- steps: [{text: I say.}]\n- steps: [{text: I doubt.}]"
    run = await run_agent(graphs.with_subgraph, script, tmp_path, "hello")
    assert_answer_was_streamed(run)
    expert, critic = run.all(AgentStarted)
    assert (expert.name, expert.call_id, critic.name) == ("expert", "", "critic")
    assert run.at(run.one(AgentFinished, agent_id=expert.agent_id)) < run.at(critic)
    assert run.text() == "All done."
    assert (run.text(expert.agent_id), run.text(critic.agent_id)) == ("I say.", "I doubt.")


async def test_parallel_nodes_stream_separate_messages(tmp_path: Path) -> None:
    run = await run_agent(graphs.parallel_talkers, TALK, tmp_path)
    assert isinstance(run.terminal, RunFinished), run.terminal
    assert len(run.all(TextFinished)) == 2
    assert {branch.name: run.text(branch.agent_id) for branch in run.all(AgentStarted)} == {
        "one": "First things first.",
        "two": "Second.",
    }
    assert run.answer == "Second."
    assert run.one(FinalAnswer).message_id is None


async def test_tool_node_with_several_calls_in_one_task_ends_each(tmp_path: Path) -> None:
    calls = "{name: add, arguments: {a: 2, b: 3}}, {name: slow, arguments: {name: x, seconds: 0.1}}"
    script = answering(f"- steps: [{{tool_calls: [{calls}]}}]")
    run = await run_agent(graphs.with_tool_node, script, tmp_path)
    assert_answer_was_streamed(run)
    assert (run.call("add").result, run.call("slow").result) == ("5", "x is done")
    assert run.call("slow").started_at < run.call("add").ended_at < run.call("slow").ended_at


async def test_tool_that_code_calls_as_a_function_is_a_call(tmp_path: Path) -> None:
    run = await run_agent(graphs.calling_a_tool, "", tmp_path)
    assert_answer_was_streamed(run)
    first, second = run.call("add", 0), run.call("add", 1)
    assert (first.args, first.result, first.error) == ({"a": 2, "b": 3}, "5", None)
    assert "valid integer" in (second.error or "")
    assert run.answer == "It is 5 or so."


async def test_agents_that_parallel_tools_run_are_separate_sub_agents(tmp_path: Path) -> None:
    script = """
- match: "help: first"
  turns: [{steps: [{delay: 0.01}, {text: The first answer.}]}]
- match: "help: second"
  turns: [{steps: [{delay: 0.01}, {text: The second answer.}]}]
- turns:
    - steps:
        - tool_calls:
            - {name: delegate, arguments: {what: first}}
            - {name: delegate, arguments: {what: second}}
    - steps: [{text: All done.}]
"""
    run = await run_agent(graphs.agents_as_tools, script, tmp_path)
    assert_answer_was_streamed(run)
    one, two = run.all(AgentStarted)
    assert (one.name, two.name) == ("adder", "adder")
    assert {one.call_id, two.call_id} == {run.call("delegate", 0).call_id, run.call("delegate", 1).call_id}
    assert {run.text(one.agent_id), run.text(two.agent_id)} == {"The first answer.", "The second answer."}
    assert run.text() == "All done."


async def test_handoff_between_agents_shows_both(tmp_path: Path) -> None:
    script = "- steps: [{tool_calls: [{name: transfer, arguments: {}, id: call_t}]}]\n- steps: [{text: All done.}]"
    run = await run_agent(graphs.handing_over, script, tmp_path)
    assert isinstance(run.terminal, RunFinished), run.terminal
    first, second = run.all(AgentStarted)
    assert (first.name, second.name, second.parent_id) == ("first", "second", "")
    assert run.at(run.one(AgentFinished, agent_id=first.agent_id)) < run.at(second)
    assert (run.call("transfer").result, run.call("transfer").error) == ("handed over", None)
    assert len(run.all(ToolStarted)) == 1
    assert run.answer == "All done."


# States


@pytest.mark.parametrize("schema", [graphs.PydanticState, graphs.DataState])
async def test_state_that_is_an_object_works(tmp_path: Path, schema: Any) -> None:
    async with serve_agent(lambda _: graphs.shouting(schema), "", tmp_path) as server:
        assert (await server.run("rain")).answer == "RAIN"


async def test_graph_without_a_text_key_fails_with_its_keys(tmp_path: Path) -> None:
    graph = graphs.one_node(lambda state: {}, graphs.WrongState)
    run = await run_agent(lambda _: graph, "", tmp_path)
    assert isinstance(run.terminal, RunFailed)
    assert "width, height" in run.terminal.message and "`messages`" in run.terminal.message


@pytest.mark.parametrize("schema", [graphs.ListState, graphs.AddedState])
async def test_messages_without_a_reducer_get_the_history_each_time(tmp_path: Path, schema: Any) -> None:
    seen: list[list[str]] = []

    def note(state: Any) -> dict[str, Any]:
        seen.append([message.type for message in state["messages"]])
        return {"messages": [AIMessage("noted")]}

    async with serve_agent(lambda _: graphs.one_node(note, schema), "", tmp_path) as server:
        for _ in range(2):
            instructed = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "hello"}]
            assert_answer_was_streamed(await server.run(messages=instructed, session_id="a"))
    assert seen[0] == ["system", "human"]
    assert "remove" not in seen[1]
    assert [kind for kind in seen[1] if kind != "system"] == ["human", "ai", "human"]


async def test_context_schema_gets_the_ids_of_the_run(tmp_path: Path) -> None:
    run = await run_agent(graphs.with_context, "", tmp_path, session_id="a")
    assert run.answer == "local in a is in a good mood"


async def test_recursion_limit_of_the_graph_ends_the_run_as_max_steps(tmp_path: Path) -> None:
    async with serve_agent(graphs.endless, "", tmp_path) as server:
        for turn in (1, 2):
            run = await server.run(session_id="a")
            assert isinstance(run.terminal, RunFinished)
            assert run.terminal.code == "max_steps"
            assert str(run.answer).startswith("round"), turn
            assert run.one(FinalAnswer).message_id is not None


# Checkpointers


async def test_graphs_of_a_new_data_folder_open_one_after_the_other(tmp_path: Path) -> None:
    """SQLite refuses some concurrent changes of the journal at once, without waiting for its lock."""
    agents = [offer(graphs.greeting(None), f"agent-{number}") for number in range(8)]
    async with serving(agents=agents, data=tmp_path) as served:
        assert (await served.http.get("/ready")).status_code == 200


async def test_own_checkpointer_of_a_graph_is_used(tmp_path: Path) -> None:
    saver = InMemorySaver()
    graph = graphs.greeting(None).compile(checkpointer=saver)  # pyright: ignore[reportArgumentType]
    async with serve_agent(lambda _: graph, "", tmp_path) as server:
        await server.run(session_id="a")
        await server.run(session_id="a")
        (state,) = [s for s in saver.storage if len(await _messages(graph, s)) == 4]
        assert state
    assert not (tmp_path / "langgraph.db").exists()


async def _messages(graph: Any, thread_id: str) -> list[Any]:
    return (await graph.aget_state({"configurable": {"thread_id": thread_id}})).values["messages"]


async def test_graph_without_a_checkpointer_gets_the_history_each_time(tmp_path: Path, requests: Requests) -> None:
    async with serve_agent(
        lambda endpoint: graphs.chatting(endpoint).compile(checkpointer=False), TALK, tmp_path
    ) as server:
        for _ in range(2):
            assert_answer_was_streamed(await server.run("hello", session_id="a"))
    assert conversation_in(requests[-1]) == [("user", "hello"), ("assistant", "I see."), ("user", "hello")]


async def test_graph_without_a_checkpointer_answers_from_its_values(tmp_path: Path) -> None:
    async with serve_agent(lambda _: small_graph().compile(checkpointer=False), "", tmp_path) as server:
        assert (await server.run("hello")).answer == "hello hello"


# Functions


@pytest.mark.parametrize(
    ("function", "answers"),
    [
        (graphs.shout, ["ONE", "TWO"]),
        (graphs.facts, [{"text": "one", "length": 3}, {"text": "two", "length": 3}]),
        (graphs.counting, ["That makes 1.", "That makes 3."]),
        (graphs.remembering, ["one", "one two"]),
        (graphs.by_model, ["ONE", "TWO"]),
    ],
)
async def test_entrypoint_function_gets_its_input_by_type(tmp_path: Path, function: Any, answers: list[Any]) -> None:
    async with serve_agent(lambda _: function, "", tmp_path) as server:
        runs = [await server.run(question, session_id="a") for question in ("one", "two")]
    assert [run.answer for run in runs] == answers
    assert all(run.text() in ("", run.answer) for run in runs)
    assert all(len(run.all(StepStarted)) == 1 for run in runs)


async def test_parallel_tasks_of_a_function_stream_separate_messages(tmp_path: Path) -> None:
    run = await run_agent(graphs.with_tasks, TALK, tmp_path)
    assert isinstance(run.terminal, RunFinished), run.terminal
    assert run.answer == "First things first. Second."
    assert [(branch.name, branch.title, branch.branch) for branch in run.all(AgentStarted)] == [
        ("ask", "one", True),
        ("ask", "two", True),
    ]


@pytest.mark.parametrize("ids", [("a", "b"), (1, 2)])
async def test_data_with_names_and_ids_is_not_a_tool_call(tmp_path: Path, ids: tuple[Any, Any]) -> None:
    people = [{"id": ids[0], "name": "Ann"}, {"id": ids[1], "name": "Bob"}]
    run = await run_agent(lambda _: graphs.sending(people), "", tmp_path)
    assert_answer_was_streamed(run)
    assert run.answer == "Ann, Bob"
    assert not run.all(ToolStarted)


@pytest.mark.parametrize("todos", [["milk", "bread"], [{"item": "milk"}], "milk", None])
async def test_todos_in_another_form_are_not_a_plan(tmp_path: Path, todos: Any) -> None:
    run = await run_agent(lambda endpoint: graphs.shopping(endpoint, todos), graphs.SHOP, tmp_path)
    assert run.call("shop").result == "noted"
    assert not run.all(Plan)


async def test_sync_checkpointer_is_called_in_threads(tmp_path: Path, requests: Requests) -> None:
    """`SqliteSaver` raises outside of threads. It keeps the conversation, and `forget` deletes it."""
    connection = sqlite3.connect(tmp_path / "own.db", check_same_thread=False)
    saver = SqliteSaver(connection)
    with closing(connection):
        async with serve_agent(
            lambda endpoint: graphs.chatting(endpoint, checkpointer=saver), TALK, tmp_path / "data"
        ) as server:
            assert_answer_was_streamed(await server.run("hello", session_id="a"))
            assert_answer_was_streamed(await server.run("go on", session_id="a"))
            assert conversation_in(requests[-1]) == [("user", "hello"), ("assistant", "I see."), ("user", "go on")]
            assert connection.execute("SELECT count(*) FROM checkpoints").fetchone()[0] > 0
            assert (await server.served.http.delete("/sessions/a")).status_code == 204
        assert connection.execute("SELECT count(*) FROM checkpoints").fetchone() == (0,)
    assert type(saver) is SqliteSaver


@pytest.mark.parametrize("checkpointer", [None, False])
async def test_state_that_cannot_be_saved_fails_with_advice(tmp_path: Path, checkpointer: Any) -> None:
    run = await run_agent(lambda _: graphs.connecting(checkpointer), "", tmp_path, session_id="a")
    if checkpointer is False:
        assert_answer_was_streamed(run)
        assert run.answer == "connected"
        return
    assert isinstance(run.terminal, RunFailed)
    assert "checkpointer=False" in run.terminal.message


async def test_graph_of_an_async_factory_runs(tmp_path: Path) -> None:
    """It is made in the server's loop, to which its connections belong."""
    made: list[Any] = []

    async def make() -> Any:
        made.append(asyncio.get_running_loop())
        return graphs.greeting(None)

    async with serve_agent(lambda _: make, "", tmp_path) as server:
        for _ in range(2):
            assert_answer_was_streamed(await server.run(session_id="a"))
        offered = (await server.served.http.get("/agents")).json()["agents"]
    assert offered[0]["framework"] == "langgraph"
    assert made == [asyncio.get_running_loop()]
