# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownLambdaType=false
"""LangGraph: messages of agents, tools, middlewares and code of the graph, each of which is shown once."""

from pathlib import Path
from typing import Any, TypedDict

import pytest
from deepagents.backends import FilesystemBackend
from deepagents.middleware.summarization import SummarizationMiddleware as DeepSummarization
from langchain.agents import create_agent
from langchain.agents.middleware import AgentMiddleware, SummarizationMiddleware
from langchain.agents.structured_output import ProviderStrategy, ToolStrategy
from langchain_core.messages import AIMessage
from langchain_core.tools import tool
from langgraph.config import get_stream_writer
from pydantic import BaseModel

import limelight
from limelight.events import (
    AgentFinished,
    AgentStarted,
    FinalAnswer,
    Plan,
    RunFinished,
    Status,
    Todo,
    ToolStarted,
    Usage,
)
from tests.sources.langgraph.graphs import chain, one_node
from tests.sources.langgraph.langgraph_scenarios import answering, deep, model, plain
from tests.sources.live_turn import ModelEndpoint, run_agent, serve_agent


class Weather(BaseModel):
    place: str
    degrees: int


def calling(name: str, arguments: str = "{}") -> str:
    return f"- steps: [{{tool_calls: [{{name: {name}, arguments: {arguments}}}]}}]"


# Answers that are objects


async def test_structured_response_by_a_tool_is_the_answer(tmp_path: Path) -> None:
    def make(endpoint: ModelEndpoint) -> Any:
        return create_agent(model(endpoint), [], response_format=ToolStrategy(Weather))

    run = await run_agent(make, calling("Weather", "{place: Rome, degrees: 30}"), tmp_path)
    assert isinstance(run.terminal, RunFinished), run.terminal
    assert run.answer == {"place": "Rome", "degrees": 30}
    assert run.one(FinalAnswer).message_id is None
    assert run.text() == ""
    assert run.call("Weather").error is None


async def test_structured_response_as_text_names_its_message(tmp_path: Path) -> None:
    def make(endpoint: ModelEndpoint) -> Any:
        return create_agent(model(endpoint), [], response_format=ProviderStrategy(Weather))

    script = """- steps: [{text: '{"place": "Rome", "degrees": 30}'}]"""
    run = await run_agent(make, script, tmp_path)
    assert isinstance(run.terminal, RunFinished), run.terminal
    assert run.answer == {"place": "Rome", "degrees": 30}
    assert run.one(FinalAnswer).message_id is not None


class Asked(TypedDict, total=False):
    question: str
    context: list[str]
    answer: Any


async def test_message_under_an_answer_key_is_the_answer_and_is_not_repeated(tmp_path: Path) -> None:
    def make(endpoint: ModelEndpoint) -> Any:
        async def reply(state: Any) -> dict[str, Any]:
            return {"answer": await model(endpoint).ainvoke(state["question"]), "context": ["bees"]}

        return one_node(reply, Asked)

    run = await run_agent(make, "- steps: [{text: They dance.}]", tmp_path)
    assert isinstance(run.terminal, RunFinished), run.terminal
    assert run.answer == "They dance."
    assert run.text() == "They dance."
    assert run.one(FinalAnswer).message_id is not None


async def test_text_beside_a_call_that_ends_the_graph_is_the_answer(tmp_path: Path) -> None:
    def make(endpoint: ModelEndpoint) -> Any:
        async def route(state: Any) -> dict[str, Any]:
            await model(endpoint).ainvoke("Which kind?")
            return {}

        last = AIMessage("It is sent.", tool_calls=[{"id": "1", "name": "Done", "args": {}}])
        inner = one_node(lambda state: {"messages": [last]}).compile()
        return chain(route=route, agent=inner)

    run = await run_agent(make, "- steps: [{text: A reply.}]", tmp_path)
    assert isinstance(run.terminal, RunFinished), run.terminal
    assert run.answer == "It is sent."


# Other callers of models


class Redacting(AgentMiddleware[Any, Any, Any]):
    """Changes the reply of the model."""

    async def aafter_model(self, state: Any, runtime: Any) -> dict[str, Any]:
        last = state["messages"][-1]
        return {"messages": [AIMessage("[redacted]", id=last.id)]}


async def test_answer_that_was_changed_after_streaming_is_the_answer(tmp_path: Path) -> None:
    run = await run_agent(lambda endpoint: plain(endpoint, middleware=[Redacting()]), answering(), tmp_path)
    assert (run.answer, run.one(FinalAnswer).message_id) == ("[redacted]", None)


SUMMARY = "{text: A summary.}, {usage: {input: 7, output: 3}}"
TALK = "- match: o\n  turns: [{steps: [{text: I see.}]}]"


def summing(endpoint: ModelEndpoint, _: Path) -> Any:
    return SummarizationMiddleware(
        model=model(endpoint),
        trigger=("messages", 3),
        keep=("messages", 1),
        summary_prompt="Put it briefly: {messages}",
    )


def summing_while_asking(endpoint: ModelEndpoint, folder: Path) -> Any:
    """deepagents' middleware, which summarizes inside of the node of the agent's model."""
    return DeepSummarization(
        model(endpoint),
        backend=FilesystemBackend(root_dir=folder, virtual_mode=True),
        trigger=("messages", 3),
        keep=("messages", 1),
        summary_prompt="Put it briefly: {messages}",
    )


@pytest.mark.parametrize("middleware", [summing, summing_while_asking])
async def test_reply_to_a_middleware_is_not_shown_but_its_usage_is(tmp_path: Path, middleware: Any) -> None:
    script = f"- match: put it briefly\n  turns: [{{steps: [{SUMMARY}]}}]\n{TALK}"

    def make(endpoint: ModelEndpoint) -> Any:
        return plain(endpoint, middleware=[middleware(endpoint, tmp_path)])

    async with serve_agent(make, script, tmp_path) as server:
        await server.run("hello", session_id="a")
        run = await server.run("go on", session_id="a")
    assert run.text() == run.answer == "I see."
    assert [u.output_tokens for u in run.all(Usage) if u.input_tokens == 7] == [3]


async def test_reply_to_a_tool_is_output_of_the_tool(tmp_path: Path) -> None:
    def make(endpoint: ModelEndpoint) -> Any:
        @tool
        async def consult(what: str) -> str:
            """Ask another model."""
            return str((await model(endpoint).ainvoke(f"explain: {what}")).content)

        return create_agent(model(endpoint), [consult])

    script = '- match: "explain:"\n  turns: [{steps: [{text: A secret thing.}]}]\n- turns:\n' + "\n".join(
        f"    {line}" for line in answering(calling("consult", "{what: x}")).split("\n")
    )
    run = await run_agent(make, script, tmp_path)
    assert run.text() == run.answer == "All done."
    assert run.call("consult").output == run.call("consult").result == "A secret thing."
    assert len(run.all(Usage)) == 3


# Custom data


@tool
async def announce() -> str:
    """Say all sorts of things."""
    write = get_stream_writer()
    write("A plain word.")
    write({"status": "Halfway."})
    write({"n": 1})
    write(Plan(items=(Todo("Rest"),)))
    limelight.status("From an async tool.")
    return "announced"


@tool
def locate() -> str:
    """Say where one is."""
    limelight.status("From a sync tool.")
    here = limelight.current()
    assert here is not None
    return f"{here.session_id} {here.user.user_id}"


async def test_tools_can_emit_statuses_and_events(tmp_path: Path) -> None:
    script = answering("- steps: [{tool_calls: [{name: announce, arguments: {}}, {name: locate, arguments: {}}]}]")
    run = await run_agent(
        lambda endpoint: create_agent(model(endpoint), [announce, locate]), script, tmp_path, session_id="a"
    )
    assert isinstance(run.terminal, RunFinished), run.terminal
    assert {s.text for s in run.all(Status)} == {
        "A plain word.",
        "Halfway.",
        '{"n":1}',
        "From an async tool.",
        "From a sync tool.",
    }
    assert run.one(Plan).items == (Todo("Rest"),)
    assert run.call("locate").result == "a local"


# Sub-agents


async def test_equal_calls_of_a_sub_agent_are_two_sub_agents(tmp_path: Path) -> None:
    same = '{name: task, arguments: {description: "help: now", subagent_type: helper}, id: same}'
    script = f"""
- match: "help:"
  turns:
    - steps: [{{tool_calls: [{{name: add, arguments: {{a: 2, b: 3}}, id: same}}]}}]
    - steps: [{{text: The sum is five.}}]
- turns:
    - steps: [{{tool_calls: [{same}]}}]
    - steps: [{{tool_calls: [{same}]}}]
    - steps: [{{text: All done.}}]
"""
    run = await run_agent(deep, script, tmp_path)
    assert isinstance(run.terminal, RunFinished), run.terminal
    first, second = run.all(AgentStarted)
    assert (first.name, second.name) == ("helper", "helper")
    assert (first.call_id, second.call_id) == (run.call("task", 0).call_id, run.call("task", 1).call_id)
    assert run.at(run.one(AgentFinished, agent_id=first.agent_id)) < run.at(second)
    assert [run.call("add", n).started.agent_id for n in (0, 1)] == [first.agent_id, second.agent_id]
    assert {run.call("task", n).result for n in (0, 1)} == {"The sum is five."}
    assert run.text() == "All done."
    assert len({e.call_id for e in run.all(ToolStarted)}) == 4


@pytest.mark.parametrize("number", [2, 3])
async def test_calls_of_one_reply_with_one_id_become_unique(tmp_path: Path, number: int) -> None:
    calls = ", ".join(f"{{name: add, arguments: {{a: {n}, b: 1}}, id: same}}" for n in range(number))
    run = await run_agent(plain, answering(f"- steps: [{{tool_calls: [{calls}]}}]"), tmp_path)
    assert isinstance(run.terminal, RunFinished), run.terminal
    assert {run.call("add", n).result for n in range(number)} == {str(n + 1) for n in range(number)}
