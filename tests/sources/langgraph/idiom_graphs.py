# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownParameterType=false, reportUnknownArgumentType=false, reportUnknownLambdaType=false, reportArgumentType=false, reportIndexIssue=false, reportAttributeAccessIssue=false, reportMissingTypeArgument=false, reportCallIssue=false
"""Graphs with idioms of real projects: their own reducers and keys, data as messages, inner graphs, changed calls."""

import asyncio
import operator
from collections.abc import Callable
from typing import Annotated, Any, Literal

from langchain.agents import create_agent
from langchain.agents.middleware import after_model
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, RemoveMessage, ToolMessage
from langchain_core.output_parsers import StrOutputParser
from langchain_core.runnables import RunnableLambda
from langchain_core.tools import InjectedToolCallId, tool
from langgraph.config import get_stream_writer
from langgraph.func import entrypoint, task
from langgraph.graph import END, START, MessagesState, StateGraph, add_messages
from langgraph.graph.message import push_message
from langgraph.prebuilt import InjectedState, ToolNode, tools_condition
from langgraph.types import Command, Overwrite, Send, StreamWriter, interrupt
from pydantic import BaseModel
from typing_extensions import TypedDict

from tests.sources.langgraph.graphs import chain
from tests.sources.langgraph.langgraph_scenarios import add, fail, model
from tests.sources.live_turn import ModelEndpoint

Make = Callable[[ModelEndpoint], Any]

# Reducers and keys


def _last_two(old: Any, new: Any) -> Any:
    return add_messages(old or [], new)[-2:]


class WindowState(TypedDict):
    messages: Annotated[list[Any], _last_two]


def window(endpoint: ModelEndpoint) -> Any:
    """A reducer that keeps the last two messages."""

    async def speak(_: Any) -> Any:
        return {"messages": [await model(endpoint).ainvoke("write: a line")]}

    return chain(
        WindowState,
        first=lambda _: {"messages": [AIMessage("One."), AIMessage("Two.")]},
        speak=speak,
        last=lambda _: {"messages": AIMessage("Three.")},
    )


class TwoKeys(MessagesState):
    scratch: Annotated[list[AnyMessage], add_messages]


def two_keys(endpoint: ModelEndpoint) -> Any:
    """The loop of model and tools works on a list of its own."""
    asked = model(endpoint).bind_tools([add])

    async def think(state: Any) -> Any:
        return {"scratch": [await asked.ainvoke([HumanMessage("add: once"), *state["scratch"]])]}

    builder = StateGraph(TwoKeys)
    builder.add_node("think", think)
    builder.add_node("tools", ToolNode([add], messages_key="scratch"))
    builder.add_node("conclude", lambda state: {"messages": [AIMessage("So: " + state["scratch"][-1].content)]})
    builder.add_edge(START, "think")
    builder.add_conditional_edges("think", lambda state: "tools" if state["scratch"][-1].tool_calls else "conclude")
    builder.add_edge("tools", "think")
    return builder


class FormsState(BaseModel):
    messages: Annotated[list[AnyMessage], add_messages] = []
    mixed: Annotated[list[Any], operator.add] = []
    one: Any = None


def update_forms(_: ModelEndpoint) -> Any:
    """Updates in every form: an object of the state, pairs in a command, a list of updates, a single message."""
    return chain(
        FormsState,
        model=lambda _: FormsState(messages=[AIMessage("As a model.")]),
        pairs=lambda _: Command(update=[("messages", [AIMessage("In a pair.")]), ("messages", AIMessage("Another."))]),
        several=lambda _: [{"messages": [AIMessage("First.")]}, Command(update={"messages": [("ai", "Second.")]})],
        mixed=lambda _: {"mixed": [AIMessage("An object."), {"role": "assistant", "content": "A dict beside it."}]},
        single=lambda _: {"one": AIMessage("A single one.")},
        overwritten=lambda _: {"messages": Overwrite([AIMessage("Overwritten.")])},
        blocks=lambda _: {"messages": [AIMessage([{"type": "text", "text": "A block."}])]},
    )


def pushing(_: ModelEndpoint) -> Any:
    """Nodes that push messages into the stream and the state themselves."""

    def push(_: Any) -> Any:
        push_message(AIMessage("Pushed.", id="p1"))
        push_message({"role": "ai", "content": "Pushed as a dict.", "id": "p2"})
        return {"messages": [AIMessage("Returned.")]}

    return chain(push=push)


def trimming(endpoint: ModelEndpoint) -> Any:
    """A summary replaces the messages; later nodes return one of them again."""

    async def talk(state: Any) -> Any:
        return {"messages": [await model(endpoint).ainvoke("write: a line")]}

    def drop(state: Any) -> Any:
        return {"messages": [RemoveMessage(id=message.id) for message in state["messages"][:-1]]}

    def rename(state: Any) -> Any:
        return {"messages": [state["messages"][-1].model_copy(update={"name": "bot"}), AIMessage("Renamed.")]}

    return chain(talk=talk, drop=drop, rename=rename)


# Models


class Route(TypedDict):
    """The next node."""

    step: Literal["poem", "END"]


def routed(method: str) -> Make:
    """A model chooses the next node by structured output, which only the node reads."""

    def make(endpoint: ModelEndpoint) -> Any:
        router = model(endpoint).with_structured_output(Route, method=method)

        def route(state: Any) -> Command[Any]:
            return Command(goto=router.invoke([HumanMessage(f"route: {method}")])["step"])

        async def poem(_: Any) -> Any:
            return {"messages": [await model(endpoint).ainvoke("write: a line")]}

        builder = StateGraph(MessagesState)
        builder.add_node("route", route)
        builder.add_node("poem", poem)
        builder.add_edge(START, "route")
        return builder

    return make


def raw_output(endpoint: ModelEndpoint) -> Any:
    """A node puts the message that contains the structured output into the state."""
    router = model(endpoint).with_structured_output(Route, method="json_schema", include_raw=True)

    async def route(_: Any) -> Any:
        return {"messages": [(await router.ainvoke([HumanMessage("route: json_schema")]))["raw"]]}

    return chain(route=route, end=lambda _: {"messages": [AIMessage("Decided.")]})


def supervised_reports(endpoint: ModelEndpoint) -> Any:
    """A supervisor routes by structured output; a worker reports as a human message, which is the last one."""
    worker = create_agent(model(endpoint), [add], name="worker")

    def supervise(state: Any) -> Command[Any]:
        question = HumanMessage(f"supervise: {len(state['messages'])}")
        step = model(endpoint).with_structured_output(Route).invoke([question])["step"]
        return Command(goto="work" if step == "poem" else END)

    def work(_: Any) -> Command[Any]:
        report = worker.invoke({"messages": [HumanMessage("add: once")]})["messages"][-1].content
        return Command(goto="supervise", update={"messages": [HumanMessage(report, name="worker")]})

    builder = StateGraph(MessagesState)
    builder.add_node("supervise", supervise)
    builder.add_node("work", work)
    builder.add_edge(START, "supervise")
    return builder


def models_everywhere(endpoint: ModelEndpoint) -> Any:
    """Models in an edge, in a chain with a parser, without a stream, twice in a node, and streamed by a node."""

    async def edge(_: Any) -> str:
        await model(endpoint).ainvoke("write: an edge")
        return "parsed"

    async def quiet(_: Any) -> Any:
        return {"messages": [await model(endpoint).ainvoke("write: quietly", {"tags": ["nostream"]})]}

    async def twice(_: Any) -> Any:
        return {"messages": [await model(endpoint).ainvoke(f"write: {side}") for side in ("left", "right")]}

    async def manual(_: Any) -> Any:
        whole: Any = None
        async for chunk in model(endpoint).astream("write: a line"):
            whole = chunk if whole is None else whole + chunk
        return {"messages": [whole]}

    parsed = (
        RunnableLambda(lambda _: "write: parsed")
        | model(endpoint)
        | StrOutputParser()
        | RunnableLambda(lambda text: {"messages": [AIMessage(text, name="writer")]})
    )
    builder = StateGraph(MessagesState)
    nodes = {"start": lambda _: {}, "parsed": parsed, "quiet": quiet, "twice": twice, "manual": manual}
    for name, node in nodes.items():
        builder.add_node(name, node)
    builder.add_edge(START, "start")
    builder.add_conditional_edges("start", edge, ["parsed"])
    builder.add_edge("parsed", "quiet")
    builder.add_edge("quiet", "twice")
    builder.add_edge("twice", "manual")
    return builder


# Tools


class UserState(MessagesState):
    user: str


@tool
def look_up(name: str, call_id: Annotated[str, InjectedToolCallId]) -> Command[Any]:
    """Change the state."""
    return Command(update={"user": name, "messages": [ToolMessage(f"found {name}", tool_call_id=call_id)]})


@tool
def leave(call_id: Annotated[str, InjectedToolCallId]) -> Command[Any]:
    """Go to another node, and speak."""
    said = [ToolMessage("leaving", tool_call_id=call_id), AIMessage("A tool says that it leaves.")]
    return Command(goto="end", update={"messages": said})


@tool
def count_messages(state: Annotated[Any, InjectedState]) -> str:
    """Read the state."""
    return f"{len(state['messages'])} messages"


@tool
def nothing() -> None:
    """Return nothing."""


def commanding(endpoint: ModelEndpoint) -> Any:
    """Tools that return commands, read the state, fail, do not exist, or get wrong arguments."""
    tools = [look_up, leave, count_messages, nothing, fail]

    async def call(_: Any) -> Any:
        return {"messages": [await model(endpoint).bind_tools(tools).ainvoke("command: all")]}

    builder = StateGraph(UserState)
    builder.add_node("call", call)
    builder.add_node("tools", ToolNode(tools, handle_tool_errors=True))
    builder.add_node("end", lambda _: {"messages": [AIMessage("The end.")]})
    builder.add_edge(START, "call")
    builder.add_conditional_edges("call", tools_condition, ["tools", END])
    return builder


def reviewed(endpoint: ModelEndpoint, *, asks: bool = False, by_hand: bool = False, as_object: bool = False) -> Any:
    """A node changes the call of the model before the tool runs: the message has the same id as before."""
    asked = model(endpoint).bind_tools([add])

    async def call(state: Any) -> Any:
        return {"messages": [await asked.ainvoke(state["messages"])]}

    def review(state: Any) -> Command[Any]:
        last = state["messages"][-1]
        if asks:
            interrupt({"question": "Is this right?", "tool_call": last.tool_calls[0]})
        changed = {**last.tool_calls[0], "args": {"a": 20, "b": 30}}
        fields = {"id": last.id, "content": last.content, "tool_calls": [changed]}
        message = AIMessage(**fields) if as_object else {"role": "ai", **fields}
        return Command(goto="act", update={"messages": [message]})

    def act(state: Any) -> Any:
        calls = state["messages"][-1].tool_calls
        return {"messages": [ToolMessage(add.invoke(made["args"]), tool_call_id=made["id"]) for made in calls]}

    builder = StateGraph(MessagesState)
    builder.add_node("call", call)
    builder.add_node("review", review)
    builder.add_node("act", act if by_hand else ToolNode([add]))
    builder.add_edge(START, "call")
    builder.add_conditional_edges("call", lambda state: "review" if state["messages"][-1].tool_calls else END)
    builder.add_edge("act", "call")
    return builder


def edited_by_a_middleware(endpoint: ModelEndpoint) -> Any:
    """A hook of a middleware changes the call of the model."""

    @after_model
    async def edit(state: Any, runtime: Any) -> Any:
        last = state["messages"][-1]
        changed = [{**made, "args": {"a": 20, "b": 30}} for made in last.tool_calls]
        return {"messages": [last.model_copy(update={"tool_calls": changed})]}

    return create_agent(model(endpoint), [add], middleware=[edit])


def handing_on(endpoint: ModelEndpoint) -> Any:
    """Agents that hand over to each other with all their messages, and to a worker with a task."""

    @tool
    def to_bob(state: Annotated[Any, InjectedState], call_id: Annotated[str, InjectedToolCallId]) -> Command[Any]:
        """Hand over."""
        said = [*state["messages"], ToolMessage("Transferred to Bob.", tool_call_id=call_id)]
        return Command(goto="bob", graph=Command.PARENT, update={"messages": said})

    @tool
    def to_worker(state: Annotated[Any, InjectedState], call_id: Annotated[str, InjectedToolCallId]) -> Command[Any]:
        """Give a task to the worker."""
        said = [*state["messages"], ToolMessage("Sent to the worker.", tool_call_id=call_id)]
        sent = Send("worker", {"messages": [HumanMessage("add: once")]})
        return Command(goto=[sent], graph=Command.PARENT, update={"messages": said})

    builder = StateGraph(MessagesState)
    builder.add_node("alice", create_agent(model(endpoint), [to_bob], system_prompt="Alice", name="alice"))
    builder.add_node("bob", create_agent(model(endpoint), [to_worker], system_prompt="Bob", name="bob"))
    builder.add_node("worker", create_agent(model(endpoint), [add], name="worker"))
    builder.add_edge(START, "alice")
    return builder


# Graphs inside of graphs


class Draft(TypedDict):
    draft: str
    notes: Annotated[list[AnyMessage], add_messages]


def _writer(endpoint: ModelEndpoint) -> Any:
    """A graph with a state of its own, and with a node that runs synchronously and asynchronously."""

    def write(_: Any) -> Any:
        reply = model(endpoint).invoke("write: a line")
        return {"draft": reply.content, "notes": [reply]}

    async def awrite(_: Any) -> Any:
        reply = await model(endpoint).ainvoke("write: a line")
        return {"draft": reply.content, "notes": [reply]}

    builder = StateGraph(Draft)
    builder.add_node("write", RunnableLambda(write, awrite))
    builder.add_edge(START, "write")
    return builder.compile()


def inner_graphs(endpoint: ModelEndpoint) -> Any:
    """Nodes that run another graph in every way, also synchronously on the event loop."""
    writer = _writer(endpoint)

    def told(number: int, state: Any) -> Any:
        return {"messages": [AIMessage(f"{number}: {state['draft']}")]}

    async def awaited(_: Any) -> Any:
        return told(1, await writer.ainvoke({}))

    async def blocking(_: Any) -> Any:  # without a model: that of the test would wait for the event loop
        return told(2, chain(Draft, write=lambda _: {"draft": "On the event loop."}).compile().invoke({}))

    def in_a_thread(_: Any) -> Any:
        return told(3, writer.invoke({}))

    def streamed(_: Any) -> Any:
        return told(4, [*writer.stream({}, stream_mode="values")][-1])

    async def tapped(_: Any) -> Any:
        return told(5, [values async for _, values in writer.astream({}, stream_mode=["messages", "values"])][-1])

    async def observed(_: Any) -> Any:
        ends = [e async for e in writer.astream_events({}, version="v2") if e["event"] == "on_chain_end"]
        return told(6, ends[-1]["data"]["output"])

    return chain(
        awaited=awaited,
        blocking=blocking,
        in_a_thread=in_a_thread,
        streamed=streamed,
        tapped=tapped,
        observed=observed,
    )


class Jokes(TypedDict):
    subject: str
    jokes: Annotated[list[Any], operator.add]


class Collected(MessagesState):
    jokes: Annotated[list[Any], operator.add]


def mapped_subgraphs(endpoint: ModelEndpoint) -> Any:
    """`Send` starts a subgraph with a state of its own for each subject; a deferred node joins them."""

    def asking(what: str) -> Any:
        async def ask(state: Any) -> Any:
            return {"jokes": [await model(endpoint).ainvoke(f"{what}: {state['subject']}")]}

        return ask

    builder = StateGraph(Collected)
    builder.add_node("joke", chain(Jokes, write=asking("joke"), polish=asking("polish")).compile())
    builder.add_node("best", lambda s: {"messages": [AIMessage("Best: " + s["jokes"][-1].content)]}, defer=True)
    builder.add_conditional_edges(START, lambda _: [Send("joke", {"subject": s}) for s in ("cats", "dogs")], ["joke"])
    builder.add_edge("joke", "best")
    return builder


def nested_dicts(endpoint: ModelEndpoint) -> Any:
    """Subgraphs in subgraphs that share the messages and return some as dicts."""

    async def leaf(_: Any) -> Any:
        reply = await model(endpoint).ainvoke("write: a line")
        return {"messages": [reply, {"role": "assistant", "content": "A leaf."}]}

    middle = chain(leaf=chain(leaf=leaf).compile(), middle=lambda _: {"messages": [("ai", "In the middle.")]}).compile()
    return chain(middle=middle, end=lambda _: {"messages": [AIMessage("All done.")]})


# The functional API


def saving_more(endpoint: ModelEndpoint) -> Any:
    """A function that saves more than it returns."""

    @task
    async def call_model(messages: Any) -> Any:
        return await model(endpoint).bind_tools([add]).ainvoke(messages)

    @task
    async def call_tool(call: Any) -> Any:
        return await add.ainvoke(call)

    @entrypoint()
    async def agent(messages: list[AnyMessage], *, previous: Any, writer: StreamWriter) -> Any:
        writer({"status": "starting"})
        known = [*(previous or []), *messages, HumanMessage("add: once")]
        reply = await call_model(known)
        while reply.tool_calls:
            results = await asyncio.gather(*(call_tool(call) for call in reply.tool_calls))
            known = [*known, reply, *results]
            reply = await call_model(known)
        return entrypoint.final(value=reply, save=[*known, reply])

    return agent


# What code writes to the stream


class Written(MessagesState):
    done: Annotated[list[Any], operator.add]


@tool
def announce(what: str) -> str:
    """Write to the stream."""
    get_stream_writer()(f"tool in {what}")
    return what


def writing(_: ModelEndpoint) -> Any:
    """Parallel nodes, a tool, a subgraph and tasks of `Send` write to the stream; a node reads what another writes."""

    def left(_: Any) -> Any:
        get_stream_writer()({"progress": "node left", "percent": 10})
        return {"done": [announce.invoke({"what": "left"})]}

    async def right(_: Any, writer: StreamWriter) -> Any:
        writer({"percent": 20, "at": "node right"})
        return {"done": []}

    def inner(_: Any) -> Any:
        get_stream_writer()("node inner")
        return {"done": []}

    def work(state: Any) -> Any:
        get_stream_writer()(f"work {state['number']}")
        return {"done": []}

    subgraph = chain(Written, inner=inner).compile()

    async def read(_: Any) -> Any:
        seen = [data async for data in subgraph.astream({"messages": []}, stream_mode="custom")]
        return {"messages": [AIMessage(f"Read: {seen}")]}

    builder = StateGraph(Written)
    for name, node in (("left", left), ("right", right), ("inner", subgraph), ("work", work), ("read", read)):
        builder.add_node(name, node)
    for name in ("left", "right", "inner"):
        builder.add_edge(START, name)
    builder.add_conditional_edges("right", lambda _: [Send("work", {"number": n}) for n in (1, 2)], ["work"])
    builder.add_edge("work", "read")
    return builder
