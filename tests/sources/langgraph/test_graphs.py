"""LangGraph: graphs that are no agents of a library, in all the shapes that people give them."""
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
from tests.sources.live_turn import Played, theatre
from tests.sources.recorded_requests import recorded, said

TALK = """
- match: one
  turns: [{steps: [{delay: 0.02}, {text: First things first.}]}]
- match: two
  turns: [{steps: [{delay: 0.01}, {text: Second.}]}]
- match: o
  turns: [{steps: [{text: I see.}]}]
"""


def repeated(run: Played) -> None:
    """The answer is what was streamed, said once, and it says where."""
    assert isinstance(run.terminal, RunFinished), run.terminal
    answer = run.one(FinalAnswer)
    assert answer.message_id is not None
    assert "".join(e.text for e in run.all(TextDelta, message_id=answer.message_id)) == answer.content


async def test_a_node_that_asks_a_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    requests = recorded(monkeypatch)
    async with theatre(graphs.chatting, TALK, tmp_path) as stage:
        run = await stage.play("hello", session_id="a")
        repeated(run)
        assert run.text() == "I see."
        repeated(await stage.play("go on", session_id="a"))
    assert said(requests[-1]) == [("user", "hello"), ("assistant", "I see."), ("user", "go on")]


async def test_a_node_that_says_something_without_a_model(tmp_path: Path) -> None:
    async with theatre(graphs.greeting, "", tmp_path) as stage:
        for _ in range(2):
            run = await stage.play(session_id="a")
            repeated(run)
            assert run.text() == "hi"


async def test_a_graph_in_a_graph_is_a_sub_agent_that_ends_with_its_node(tmp_path: Path) -> None:
    script = "- steps: [{text: I say.}]\n- steps: [{text: I doubt.}]"
    async with theatre(graphs.with_subgraph, script, tmp_path) as stage:
        run = await stage.play("hello")
    repeated(run)
    expert, critic = run.all(AgentStarted)
    assert (expert.name, expert.call_id, critic.name) == ("expert", "", "critic")
    assert run.at(run.one(AgentFinished, agent_id=expert.agent_id)) < run.at(critic)
    assert run.text() == "All done."
    assert (run.text(expert.agent_id), run.text(critic.agent_id)) == ("I say.", "I doubt.")


async def test_parallel_nodes_that_both_stream(tmp_path: Path) -> None:
    async with theatre(graphs.parallel_talkers, TALK, tmp_path) as stage:
        run = await stage.play()
    repeated(run)
    assert len(run.all(TextFinished)) == 2
    assert run.answer == "Second."


async def test_a_tool_node_runs_several_calls_in_one_task(tmp_path: Path) -> None:
    calls = "{name: add, arguments: {a: 2, b: 3}}, {name: slow, arguments: {name: x, seconds: 0.1}}"
    script = answering(f"- steps: [{{tool_calls: [{calls}]}}]")
    async with theatre(graphs.with_tool_node, script, tmp_path) as stage:
        run = await stage.play()
    repeated(run)
    assert (run.call("add").result, run.call("slow").result) == ("5", "x is done")
    assert run.call("slow").begun_at < run.call("add").ended_at < run.call("slow").ended_at


async def test_a_tool_that_is_called_as_a_function(tmp_path: Path) -> None:
    async with theatre(graphs.calling_a_tool, "", tmp_path) as stage:
        run = await stage.play()
    repeated(run)
    first, second = run.call("add", 0), run.call("add", 1)
    assert (first.args, first.result, first.error) == ({"a": 2, "b": 3}, "5", None)
    assert "valid integer" in (second.error or "")
    assert run.answer == "It is 5 or so."


async def test_agents_that_tools_ask_are_told_apart(tmp_path: Path) -> None:
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
    async with theatre(graphs.agents_as_tools, script, tmp_path) as stage:
        run = await stage.play()
    repeated(run)
    one, two = run.all(AgentStarted)
    assert (one.name, two.name) == ("adder", "adder")
    assert {one.call_id, two.call_id} == {run.call("delegate", 0).call_id, run.call("delegate", 1).call_id}
    assert {run.text(one.agent_id), run.text(two.agent_id)} == {"The first answer.", "The second answer."}
    assert run.text() == "All done."


async def test_agents_that_hand_over(tmp_path: Path) -> None:
    script = "- steps: [{tool_calls: [{name: transfer, arguments: {}, id: call_t}]}]\n- steps: [{text: All done.}]"
    async with theatre(graphs.handing_over, script, tmp_path) as stage:
        run = await stage.play()
    assert isinstance(run.terminal, RunFinished), run.terminal
    first, second = run.all(AgentStarted)
    assert (first.name, second.name, second.parent_id) == ("first", "second", "")
    assert run.at(run.one(AgentFinished, agent_id=first.agent_id)) < run.at(second)
    assert (run.call("transfer").result, run.call("transfer").error) == ("handed over", None)
    assert len(run.all(ToolStarted)) == 1
    assert run.answer == "All done."


# States


@pytest.mark.parametrize("schema", [graphs.PydanticState, graphs.DataState])
async def test_states_that_are_objects(tmp_path: Path, schema: Any) -> None:
    async with theatre(lambda _: graphs.shouting(schema), "", tmp_path) as stage:
        assert (await stage.play("rain")).answer == "RAIN"


async def test_a_graph_that_takes_no_text_says_what_it_takes(tmp_path: Path) -> None:
    graph = graphs.one_node(lambda state: {}, graphs.WrongState)
    async with theatre(lambda _: graph, "", tmp_path) as stage:
        run = await stage.play()
    assert isinstance(run.terminal, RunFailed)
    assert "width, height" in run.terminal.message and "`messages`" in run.terminal.message


@pytest.mark.parametrize("schema", [graphs.ListState, graphs.AddedState])
async def test_messages_without_langgraphs_reducer(tmp_path: Path, schema: Any) -> None:
    seen: list[list[str]] = []

    def note(state: Any) -> dict[str, Any]:
        seen.append([message.type for message in state["messages"]])
        return {"messages": [AIMessage("noted")]}

    async with theatre(lambda _: graphs.one_node(note, schema), "", tmp_path) as stage:
        for _ in range(2):
            told = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "hello"}]
            repeated(await stage.play(messages=told, session_id="a"))
    assert seen[0] == ["system", "human"]
    assert "remove" not in seen[1]
    assert [kind for kind in seen[1] if kind != "system"] == ["human", "ai", "human"]


async def test_a_graph_with_a_context(tmp_path: Path) -> None:
    async with theatre(graphs.with_context, "", tmp_path) as stage:
        run = await stage.play(session_id="a")
    assert run.answer == "local in a is in a good mood"


async def test_a_limit_of_the_graph_itself(tmp_path: Path) -> None:
    async with theatre(graphs.endless, "", tmp_path) as stage:
        for turn in (1, 2):
            run = await stage.play(session_id="a")
            assert isinstance(run.terminal, RunFinished)
            assert run.terminal.code == "max_steps"
            assert str(run.answer).startswith("round"), turn
            assert run.one(FinalAnswer).message_id is not None


# Checkpointers


async def test_a_checkpointer_of_the_graph_itself_is_kept(tmp_path: Path) -> None:
    saver = InMemorySaver()
    graph = graphs.greeting(None).compile(checkpointer=saver)  # pyright: ignore[reportArgumentType]
    async with theatre(lambda _: graph, "", tmp_path) as stage:
        await stage.play(session_id="a")
        await stage.play(session_id="a")
        (state,) = [s for s in saver.storage if len(await _messages(graph, s)) == 4]
        assert state
    assert not (tmp_path / "langgraph.db").exists()


async def _messages(graph: Any, thread_id: str) -> list[Any]:
    return (await graph.aget_state({"configurable": {"thread_id": thread_id}})).values["messages"]


async def test_a_graph_that_keeps_nothing_gets_the_past_each_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    requests = recorded(monkeypatch)
    async with theatre(lambda stage: graphs.chatting(stage).compile(checkpointer=False), TALK, tmp_path) as stage:
        for _ in range(2):
            repeated(await stage.play("hello", session_id="a"))
    assert said(requests[-1]) == [("user", "hello"), ("assistant", "I see."), ("user", "hello")]


async def test_a_graph_that_keeps_nothing_and_says_nothing(tmp_path: Path) -> None:
    async with theatre(lambda _: small_graph().compile(checkpointer=False), "", tmp_path) as stage:
        assert (await stage.play("hello")).answer == "hello hello"


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
async def test_functions(tmp_path: Path, function: Any, answers: list[Any]) -> None:
    async with theatre(lambda _: function, "", tmp_path) as stage:
        runs = [await stage.play(question, session_id="a") for question in ("one", "two")]
    assert [run.answer for run in runs] == answers
    assert all(run.text() in ("", run.answer) for run in runs)
    assert all(len(run.all(StepStarted)) == 1 for run in runs)


async def test_a_function_with_parallel_tasks_that_ask_a_model(tmp_path: Path) -> None:
    async with theatre(graphs.with_tasks, TALK, tmp_path) as stage:
        run = await stage.play()
    assert isinstance(run.terminal, RunFinished), run.terminal
    assert run.answer == "First things first. Second."
    assert not run.all(AgentStarted)


@pytest.mark.parametrize("ids", [("a", "b"), (1, 2)])
async def test_data_with_names_and_ids_is_no_tool_call(tmp_path: Path, ids: tuple[Any, Any]) -> None:
    people = [{"id": ids[0], "name": "Ann"}, {"id": ids[1], "name": "Bob"}]
    async with theatre(lambda _: graphs.sending(people), "", tmp_path) as stage:
        run = await stage.play()
    repeated(run)
    assert run.answer == "Ann, Bob"
    assert not run.all(ToolStarted)


@pytest.mark.parametrize("todos", [["milk", "bread"], [{"item": "milk"}], "milk", None])
async def test_todos_of_a_tools_own_are_no_plan(tmp_path: Path, todos: Any) -> None:
    async with theatre(lambda stage: graphs.shopping(stage, todos), graphs.SHOP, tmp_path) as stage:
        run = await stage.play()
    assert run.call("shop").result == "noted"
    assert not run.all(Plan)


async def test_a_checkpointer_that_cannot_be_awaited(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`SqliteSaver` says so itself: its methods run in threads. It keeps the conversation, and forgets it."""
    requests = recorded(monkeypatch)
    connection = sqlite3.connect(tmp_path / "own.db", check_same_thread=False)
    saver = SqliteSaver(connection)
    with closing(connection):
        async with theatre(lambda stage: graphs.chatting(stage, checkpointer=saver), TALK, tmp_path / "data") as stage:
            repeated(await stage.play("hello", session_id="a"))
            repeated(await stage.play("go on", session_id="a"))
            assert said(requests[-1]) == [("user", "hello"), ("assistant", "I see."), ("user", "go on")]
            assert connection.execute("SELECT count(*) FROM checkpoints").fetchone()[0] > 0
            assert (await stage.served.http.delete("/sessions/a")).status_code == 204
        assert connection.execute("SELECT count(*) FROM checkpoints").fetchone() == (0,)
    assert type(saver) is SqliteSaver


@pytest.mark.parametrize("checkpointer", [None, False])
async def test_a_state_that_cannot_be_kept(tmp_path: Path, checkpointer: Any) -> None:
    async with theatre(lambda _: graphs.connecting(checkpointer), "", tmp_path) as stage:
        run = await stage.play(session_id="a")
    if checkpointer is False:
        repeated(run)
        assert run.answer == "connected"
        return
    assert isinstance(run.terminal, RunFailed)
    assert "checkpointer=False" in run.terminal.message


async def test_a_graph_that_a_coroutine_makes(tmp_path: Path) -> None:
    """It is made in the server's loop: what it opens belongs there."""
    made: list[Any] = []

    async def make() -> Any:
        made.append(asyncio.get_running_loop())
        return graphs.greeting(None)

    async with theatre(lambda _: make, "", tmp_path) as stage:
        for _ in range(2):
            repeated(await stage.play(session_id="a"))
        offered = (await stage.served.http.get("/agents")).json()["agents"]
    assert offered[0]["framework"] == "langgraph"
    assert made == [asyncio.get_running_loop()]
