# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownParameterType=false, reportUnknownArgumentType=false, reportUnknownLambdaType=false, reportArgumentType=false, reportIndexIssue=false, reportAttributeAccessIssue=false
"""Hand-written graphs of many shapes, without LangChain's or deepagents' agents."""

import asyncio
import operator
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, TypedDict

from langchain.agents import AgentState, create_agent
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_core.tools import InjectedToolCallId, tool
from langgraph.func import entrypoint, task
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode
from langgraph.runtime import Runtime
from langgraph.types import Command, Send
from pydantic import BaseModel

from tests.sources.langgraph.langgraph_scenarios import TOOLS, add, model
from tests.sources.live_turn import ModelEndpoint


def chain(schema: Any = MessagesState, **nodes: Any) -> Any:
    """A graph with these nodes, one after the other."""
    builder = StateGraph(schema)
    before = START
    for name, node in nodes.items():
        builder.add_node(name, node)
        builder.add_edge(before, name)
        before = name
    return builder


def one_node(node: Any, schema: Any = MessagesState, **options: Any) -> Any:
    builder = StateGraph(schema, **options)
    builder.add_node("only", node)
    builder.add_edge(START, "only")
    return builder


def model_node(asked: Any, prompt: Callable[[Any], Any] = lambda state: state["messages"]) -> Any:
    """A node that adds the reply of a model to the messages."""

    async def chat(state: Any) -> dict[str, Any]:
        return {"messages": [await asked.ainvoke(prompt(state))]}

    return chat


def chatting(endpoint: ModelEndpoint, checkpointer: Any = None) -> Any:
    """A node that calls a model."""
    graph = one_node(model_node(model(endpoint)))
    return graph if checkpointer is None else graph.compile(checkpointer=checkpointer)


def greeting(_: ModelEndpoint | None) -> Any:
    return one_node(lambda state: {"messages": [AIMessage("hi")]})


def with_subgraph(endpoint: ModelEndpoint) -> Any:
    """A graph as a node of another, twice in a row."""
    inner = chatting(endpoint).compile()
    return chain(expert=inner, critic=inner, end=lambda state: {"messages": [AIMessage("All done.")]})


def parallel_talkers(endpoint: ModelEndpoint) -> Any:
    builder = StateGraph(MessagesState)
    for name in ("one", "two"):
        builder.add_node(name, model_node(model(endpoint), lambda _, name=name: [HumanMessage(name)]))
        builder.add_edge(START, name)
    return builder


def with_tool_node(endpoint: ModelEndpoint, tools: Any = TOOLS, **options: Any) -> Any:
    """The loop written by hand, all calls of a reply in one task."""
    builder = chain(think=model_node(model(endpoint).bind_tools(tools)))
    builder.add_node("act", ToolNode(tools, **options))
    builder.add_conditional_edges("think", lambda state: "act" if state["messages"][-1].tool_calls else END)
    builder.add_edge("act", "think")
    return builder


def calling_a_tool(_: ModelEndpoint) -> Any:
    """A node that calls a tool as a function; one call fails, and the node continues."""

    async def work(_: MessagesState) -> dict[str, Any]:
        total = await add.ainvoke({"a": 2, "b": 3})
        try:
            await add.ainvoke({"a": "x", "b": 3})
        except ValueError:
            total += " or so"
        return {"messages": [AIMessage(f"It is {total}.")]}

    return one_node(work)


class PydanticState(BaseModel):
    topic: str
    answer: str = ""


@dataclass
class DataState:
    topic: str
    answer: str = ""


class WrongState(TypedDict):
    width: int
    height: int


class ListState(TypedDict):
    """Messages without a reducer: what a node returns replaces them."""

    messages: list[Any]


class AddedState(TypedDict):
    messages: Annotated[list[Any], lambda old, new: old + new]


def shouting(schema: Any) -> Any:
    return one_node(lambda state: {"answer": state.topic.upper()}, schema)


@dataclass
class Who:
    user_id: str
    session_id: str = ""
    mood: str = "good"


def with_context(_: ModelEndpoint) -> Any:
    def describe(_: MessagesState, runtime: Runtime[Who]) -> dict[str, Any]:
        who = runtime.context
        return {"messages": [AIMessage(f"{who.user_id} in {who.session_id} is in a {who.mood} mood")]}

    return one_node(describe, context_schema=Who)


def endless(_: ModelEndpoint) -> Any:
    builder = chain(again=lambda state: {"messages": [AIMessage(f"round {len(state['messages'])}")]})
    builder.add_edge("again", "again")
    return builder.compile().with_config(recursion_limit=3)


# Functions


@entrypoint()
async def shout(text: str) -> str:
    return text.upper()


@entrypoint()
async def facts(text: str) -> dict[str, Any]:
    return {"text": text, "length": len(text)}


@entrypoint()
async def counting(messages: list[Any]) -> list[Any]:
    return [*messages, AIMessage(f"That makes {len(messages)}.")]


@entrypoint()
async def remembering(text: str, *, previous: Any = None) -> Any:
    heard = [*(previous or []), text]
    return entrypoint.final(value=" ".join(heard), save=heard)


@entrypoint()
async def by_model(question: PydanticState) -> str:
    return question.topic.upper()


def with_tasks(endpoint: ModelEndpoint) -> Any:
    asked = model(endpoint)

    @task
    async def ask(text: str) -> str:
        return str((await asked.ainvoke(text)).content)

    @entrypoint()
    async def both(_: str) -> str:
        return " ".join(await asyncio.gather(ask("one"), ask("two")))

    return both


# Agents as tools and as neighbours


def agents_as_tools(endpoint: ModelEndpoint) -> Any:
    """Tools that run agents, both in one task."""
    helper = create_agent(model(endpoint), [add], name="adder")

    @tool
    async def delegate(what: str) -> str:
        """Let another agent do it."""
        result = await helper.ainvoke({"messages": [("user", f"help: {what}")]})
        return str(result["messages"][-1].content)

    return with_tool_node(endpoint, [delegate])


def handing_over(endpoint: ModelEndpoint) -> Any:
    """Two agents; the first hands over to the second by a tool."""

    @tool
    def transfer() -> Command[str]:
        """Hand over."""
        result = ToolMessage("handed over", tool_call_id="call_t")
        return Command(
            goto="second", graph=Command.PARENT, update={"messages": [AIMessage("", tool_calls=[_CALL]), result]}
        )

    builder = StateGraph(MessagesState)
    builder.add_node("first", create_agent(model(endpoint), [transfer], name="first"))
    builder.add_node("second", create_agent(model(endpoint), [], name="second"))
    builder.add_edge(START, "first")
    return builder


_CALL: Any = {"name": "transfer", "args": {}, "id": "call_t"}


class Gathering(MessagesState):
    names: Annotated[list[str], operator.add]


def sending(people: list[dict[str, Any]]) -> Any:
    """Sends a list to a node, which is all of its input."""
    builder = StateGraph(Gathering)
    builder.add_node("split", lambda _: {})
    work: Any = lambda given: {"names": [one["name"] for one in given]}  # noqa: E731
    builder.add_node("work", work)
    builder.add_node("join", lambda state: {"messages": [AIMessage(", ".join(state["names"]))]})
    builder.add_edge(START, "split")
    builder.add_conditional_edges("split", lambda _: [Send("work", people)], ["work"])
    builder.add_edge("work", "join")
    return builder


class Shopping(AgentState):
    todos: Any


def shopping(endpoint: ModelEndpoint, todos: Any) -> Any:
    """A tool with `todos` in another form."""

    @tool
    def shop(what: str, tool_call_id: Annotated[str, InjectedToolCallId]) -> Command[Any]:
        """Note what to buy."""
        return Command(update={"todos": todos, "messages": [ToolMessage("noted", tool_call_id=tool_call_id)]})

    return create_agent(model(endpoint), [shop], state_schema=Shopping)


SHOP = "- steps: [{tool_calls: [{name: shop, arguments: {what: milk}}]}]\n- steps: [{text: All done.}]"


class Connecting(MessagesState):
    connection: Any


def connecting(checkpointer: Any) -> Any:
    """A graph with an object in its state that cannot be serialized."""
    graph = chain(
        Connecting,
        open=lambda _: {"connection": threading.Lock()},
        use=lambda state: {"messages": [AIMessage("connected" if state["connection"] else "")]},
    )
    return graph.compile(checkpointer=checkpointer)
