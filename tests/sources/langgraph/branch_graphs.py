# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownParameterType=false, reportUnknownArgumentType=false, reportUnknownLambdaType=false, reportArgumentType=false, reportIndexIssue=false, reportAttributeAccessIssue=false, reportMissingTypeArgument=false, reportCallIssue=false
"""Graphs whose tasks run beside each other: nodes, `Send`, subgraphs and functions; and usual shapes of workflows."""

import asyncio
import operator
from typing import Annotated, Any

from langchain.agents import create_agent
from langchain_core.messages import AIMessage, HumanMessage, RemoveMessage, ToolMessage
from langchain_core.tools import tool
from langgraph.cache.memory import InMemoryCache
from langgraph.func import entrypoint, task
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.graph.message import REMOVE_ALL_MESSAGES
from langgraph.prebuilt import ToolNode
from langgraph.types import CachePolicy, Command, Overwrite, RetryPolicy, Send, interrupt
from pydantic import BaseModel
from typing_extensions import TypedDict

from limelight import status
from tests.sources.langgraph.graphs import chain
from tests.sources.langgraph.langgraph_scenarios import add, model
from tests.sources.live_turn import ModelEndpoint


def fan(schema: Any, end: Any, **nodes: Any) -> Any:
    """Nodes that run beside each other, and then a node `end`."""
    builder = StateGraph(schema)
    builder.add_node("end", end)
    for name, node in nodes.items():
        builder.add_node(name, node)
        builder.add_edge(START, name)
        builder.add_edge(name, "end")
    builder.add_edge("end", END)
    return builder


def asking(endpoint: ModelEndpoint, question: str) -> Any:
    """A node that asks its own question of a model."""
    asked = model(endpoint)

    async def ask(_: Any) -> Any:
        return {"messages": [await asked.ainvoke([HumanMessage(question)])]}

    return ask


def done(_: Any) -> Any:
    return {"messages": [AIMessage("All done.")]}


def parallel_nodes(endpoint: ModelEndpoint) -> Any:
    """Three models stream at once."""
    return fan(
        MessagesState,
        asking(endpoint, "end"),
        **{name: asking(endpoint, name) for name in ("bees", "wasps", "ants")},
    )


# Send


class Writing(MessagesState):
    parts: Annotated[list[str], operator.add]


class Section(BaseModel):
    name: str
    length: int = 100


def map_reduce(endpoint: ModelEndpoint, *payloads: Any) -> Any:
    """`Send` starts one node several times, and the models stream at once."""
    asked = model(endpoint)
    payloads = payloads or tuple({"topic": topic, "style": "short"} for topic in ("bees", "wasps", "ants"))

    async def write(given: Any) -> Any:
        topic = given if isinstance(given, str) else given.get("topic") or given["section"].name
        reply = await asked.ainvoke([HumanMessage(topic)])
        return {"parts": [reply.content], "messages": [reply]}

    builder = StateGraph(Writing)
    builder.add_node("plan", lambda _: {"messages": [AIMessage("I plan.")]})
    builder.add_node("write", write)
    builder.add_node("join", asking(endpoint, "end"))
    builder.add_edge(START, "plan")
    builder.add_conditional_edges("plan", lambda _: [Send("write", one) for one in payloads], ["write"])
    builder.add_edge("write", "join")
    return builder


def two_kinds(_: ModelEndpoint) -> Any:
    """`Send` starts two nodes twice each, with inputs of different forms, and a third one once."""
    builder = StateGraph(MessagesState)
    sends = [Send("read", {"file": name, "place": "disk"}) for name in ("a.txt", "b.txt")]
    sends += [Send("search", {"topic": topic, "place": "web"}) for topic in ("bees", "wasps")]
    for name in ("read", "search", "plain"):
        builder.add_node(name, lambda _: {})
        builder.add_edge(name, "end")
    builder.add_node("end", done)
    builder.add_conditional_edges(START, lambda _: [*sends, "plain"], ["read", "search", "plain"])
    return builder


def orchestrator(endpoint: ModelEndpoint) -> Any:
    """A model plans sections; workers write them, each with a tool that it runs itself."""
    asked = model(endpoint)

    async def plan(state: Any) -> Any:
        return {"messages": [await asked.ainvoke([HumanMessage("plan")])]}

    async def work(given: Any) -> Any:
        total = await add.ainvoke({"a": given["section"].length, "b": 1})
        reply = await asked.ainvoke([HumanMessage(f"{given['section'].name} {total}")])
        return {"messages": [reply]}

    def assign(state: Any) -> Any:
        names = state["messages"][-1].content.split(", ")
        return [Send("work", {"section": Section(name=name, length=at)}) for at, name in enumerate(names)]

    builder = StateGraph(MessagesState)
    builder.add_node("plan", plan)
    builder.add_node("work", work)
    builder.add_node("join", done)
    builder.add_edge(START, "plan")
    builder.add_conditional_edges("plan", assign, ["work"])
    builder.add_edge("work", "join")
    return builder


# Tools in branches


def direct_tools(_: ModelEndpoint) -> Any:
    """Parallel nodes run the same tool themselves, without a model."""

    def adding(a: int) -> Any:
        async def node(_: Any) -> Any:
            await asyncio.sleep(0.05)
            return {"messages": [AIMessage(f"It is {await add.ainvoke({'a': a, 'b': 1})}.")]}

        return node

    return fan(MessagesState, done, left=adding(1), right=adding(2), other=adding(1))


class Two(TypedDict):
    messages: Annotated[list[Any], operator.add]
    left_messages: Annotated[list[Any], operator.add]
    right_messages: Annotated[list[Any], operator.add]


def two_loops(endpoint: ModelEndpoint) -> Any:
    """Two loops of a model and a tool node, in lockstep: calls of a branch are executed in the next step."""
    asked = model(endpoint).bind_tools([add])
    builder = StateGraph(Two)

    def thinking(side: str) -> Any:
        async def think(state: Any) -> Any:
            said = state[f"{side}_messages"]
            return {f"{side}_messages": [await asked.ainvoke([HumanMessage(side), *said])]}

        return think

    def routing(side: str) -> Any:
        return lambda state: f"{side}_tools" if state[f"{side}_messages"][-1].tool_calls else "end"

    for side in ("left", "right"):
        builder.add_node(f"{side}_think", thinking(side))
        builder.add_node(f"{side}_tools", ToolNode([add], messages_key=f"{side}_messages"))
        builder.add_edge(START, f"{side}_think")
        builder.add_conditional_edges(f"{side}_think", routing(side), [f"{side}_tools", "end"])
        builder.add_edge(f"{side}_tools", f"{side}_think")
    builder.add_node("end", done, defer=True)
    return builder


# Subgraphs


def parallel_subgraphs(endpoint: ModelEndpoint) -> Any:
    """Two agents are nodes beside each other, and a plain node."""
    first = create_agent(model(endpoint), [add], system_prompt="left", name="lefty")
    second = create_agent(model(endpoint), [add], system_prompt="right")
    return fan(MessagesState, done, left=first, right=second, plain=lambda _: {"messages": [AIMessage("I am plain.")]})


def nested_subgraphs(endpoint: ModelEndpoint) -> Any:
    """A subgraph beside a node; inside of it `Send` starts workers."""
    return fan(MessagesState, done, inner=map_reduce(endpoint).compile(), outer=asking(endpoint, "outer"))


def agents_in_functions(endpoint: ModelEndpoint) -> Any:
    """Parallel nodes are functions that run an agent."""
    agent = create_agent(model(endpoint), [add], name="worker")

    def node(question: str) -> Any:
        async def run(_: Any) -> Any:
            result = await agent.ainvoke({"messages": [("user", question)]})
            return {"messages": [result["messages"][-1]]}

        return run

    return fan(MessagesState, done, left=node("left"), right=node("right"))


def to_parent(_: ModelEndpoint) -> Any:
    """Parallel subgraphs write to their parent with a `Command`, one of them also chooses the next node."""

    def leave(name: str) -> Any:
        def node(_: Any) -> Command[Any]:
            update = {"messages": [AIMessage(f"{name} left.")]}
            return Command(graph=Command.PARENT, goto="end", update=update)

        return node

    builder = StateGraph(MessagesState)
    for name in ("left", "right"):
        builder.add_node(name, chain(begin=lambda _: {}, leave=leave(name)).compile())
        builder.add_edge(START, name)
    builder.add_node("end", done)
    return builder


# Functions


def functional(endpoint: ModelEndpoint) -> Any:
    """Tasks one after the other, beside each other, and a loop."""
    asked = model(endpoint)

    @task
    async def outline(text: str) -> str:
        return str((await asked.ainvoke([HumanMessage(f"outline {text}")])).content)

    @task
    async def write(topic: str, *, style: str) -> str:
        return str((await asked.ainvoke([HumanMessage(topic)])).content)

    @task
    async def review(text: str, attempt: int) -> bool:
        await asked.ainvoke([HumanMessage(f"review {attempt}")])
        return attempt > 1

    @entrypoint()
    async def report(text: str) -> str:
        topics = (await outline(text)).split(", ")
        parts = await asyncio.gather(*(write(topic, style="short") for topic in topics))
        attempt = 1
        while not await review(" ".join(parts), attempt):
            attempt += 1
        await asked.ainvoke([HumanMessage("polish")])
        return " ".join(parts)

    return report


def functional_agent(endpoint: ModelEndpoint) -> Any:
    """The agent of LangGraph's documentation: a task calls the model, and each tool call is a task."""
    asked = model(endpoint).bind_tools([add])

    @task
    async def call_model(messages: list[Any]) -> Any:
        return await asked.ainvoke(messages)

    @task
    async def call_tool(tool_call: Any) -> Any:
        return await add.ainvoke(tool_call)

    @entrypoint()
    async def agent(messages: list[Any]) -> Any:
        reply = await call_model(messages)
        while reply.tool_calls:
            results = await asyncio.gather(*(call_tool(call) for call in reply.tool_calls))
            messages = [*messages, reply, *results]
            reply = await call_model(messages)
        return [*messages, reply]

    return agent


def nested_functions(endpoint: ModelEndpoint) -> Any:
    """Tasks that call tasks, and a task that runs an agent."""
    asked = model(endpoint)
    agent = create_agent(model(endpoint), [add], name="helper")

    @task
    async def ask(topic: str) -> str:
        return str((await asked.ainvoke([HumanMessage(topic)])).content)

    @task
    async def outer(topic: str) -> str:
        reply = await ask(topic)
        status(f"about {topic}")
        return reply

    @task
    async def delegate(topic: str) -> str:
        result = await agent.ainvoke({"messages": [("user", topic)]})
        return str(result["messages"][-1].content)

    @entrypoint()
    async def both(text: str) -> str:
        return " ".join(await asyncio.gather(outer("bees"), outer("wasps"), delegate("left")))

    return both


def functions_of_nodes(endpoint: ModelEndpoint) -> Any:
    """Parallel nodes of a graph call functions."""
    asked = model(endpoint)

    @task
    async def ask(topic: str) -> Any:
        return await asked.ainvoke([HumanMessage(topic)])

    def node(topic: str) -> Any:
        async def run(_: Any) -> Any:
            return {"messages": [await ask(topic)]}

        return run

    return fan(MessagesState, done, left=node("bees"), right=node("wasps"))


# Usual shapes


class Loop(MessagesState):
    attempts: int


def evaluator(endpoint: ModelEndpoint) -> Any:
    """A writer and an evaluator in a loop."""
    asked = model(endpoint)

    async def write(state: Loop) -> Any:
        number = state.get("attempts", 0) + 1
        return {"messages": [await asked.ainvoke([HumanMessage(f"draft {number}")])], "attempts": number}

    async def evaluate(state: Loop) -> Any:
        return {"messages": [await asked.ainvoke([HumanMessage(f"review {state['attempts']}")])]}

    builder = chain(Loop, write=write, evaluate=evaluate)
    builder.add_conditional_edges("evaluate", lambda state: "write" if state["attempts"] < 2 else END, ["write", END])
    return builder


def router(endpoint: ModelEndpoint) -> Any:
    """A model chooses one of three nodes."""
    builder = chain(route=asking(endpoint, "route"))
    for name in ("bees", "wasps", "ants"):
        builder.add_node(name, asking(endpoint, name))
    builder.add_conditional_edges("route", lambda state: state["messages"][-1].content, ["bees", "wasps", "ants"])
    return builder


class Added(TypedDict):
    messages: Annotated[list[Any], operator.add]


def added_in_parallel(endpoint: ModelEndpoint) -> Any:
    """Messages in several forms are added by `operator.add`, from nodes beside each other."""
    asked = model(endpoint)

    async def ask(_: Any) -> Any:
        reply = await asked.ainvoke([HumanMessage("bees")])
        return {"messages": [{"role": "assistant", "content": reply.content}]}

    return fan(
        Added,
        lambda _: {"messages": [("ai", "All done.")]},
        asking=ask,
        saying=lambda _: {"messages": [{"role": "assistant", "content": "I say."}, ("ai", "Twice.")]},
        again=lambda _: {"messages": [AIMessage("I say."), ("ai", "I go.")]},
    )


def overwriting(endpoint: ModelEndpoint) -> Any:
    """A node replaces all messages by others, as objects and dicts."""

    def replace(state: MessagesState) -> Any:
        new = [AIMessage("A new one."), {"role": "assistant", "content": "Another one."}]
        return {"messages": Overwrite([*state["messages"][:1], *new])}

    return chain(ask=asking(endpoint, "bees"), replace=replace, end=done)


def removing(endpoint: ModelEndpoint) -> Any:
    """A node removes messages, one by one and all."""

    def remove(state: MessagesState) -> Any:
        return {"messages": [RemoveMessage(id=state["messages"][-1].id), AIMessage("I removed one.")]}

    def remove_all(_: MessagesState) -> Any:
        return {"messages": [RemoveMessage(id=REMOVE_ALL_MESSAGES), AIMessage("I removed all.")]}

    return chain(ask=asking(endpoint, "bees"), remove=remove, remove_all=remove_all, end=done)


def changing(endpoint: ModelEndpoint) -> Any:
    """A node changes the text of a message, which keeps its id."""

    def change(state: MessagesState) -> Any:
        return {"messages": [AIMessage("I was changed.", id=state["messages"][-1].id)]}

    def keep(state: MessagesState) -> Any:
        return {"messages": [state["messages"][-1]]}

    return chain(ask=asking(endpoint, "bees"), keep=keep, change=change, end=done)


class Pair(TypedDict):
    changeme: str


class Private(TypedDict):
    secret_messages: list[Any]


def private_channels(endpoint: ModelEndpoint) -> Any:
    """Nodes exchange messages in a channel that is neither input nor output."""
    asked = model(endpoint)

    async def begin(_: MessagesState) -> Private:
        return {"secret_messages": [await asked.ainvoke([HumanMessage("bees")])]}

    def end(state: Private) -> Any:
        return {"messages": [AIMessage(f"I know {len(state['secret_messages'])}.")]}

    return chain(MessagesState, begin=begin, end=end)


def deferred(endpoint: ModelEndpoint) -> Any:
    """A branch of two nodes beside one of one node; the last node waits for both."""
    builder = StateGraph(MessagesState)
    for name in ("bees", "wasps", "ants"):
        builder.add_node(name, asking(endpoint, name))
    builder.add_node("end", done, defer=True)
    builder.add_edge(START, "bees")
    builder.add_edge(START, "wasps")
    builder.add_edge("bees", "ants")
    builder.add_edge("ants", "end")
    builder.add_edge("wasps", "end")
    return builder


def retrying(endpoint: ModelEndpoint) -> Any:
    """Parallel nodes; one fails first and is tried again."""
    attempts: list[int] = []
    ask = asking(endpoint, "wasps")

    async def flaky(state: Any) -> Any:
        attempts.append(1)
        if len(attempts) == 1:
            raise ConnectionError("not now")
        return await ask(state)

    builder = fan(MessagesState, done, bees=asking(endpoint, "bees"))
    builder.add_node("flaky", flaky, retry_policy=RetryPolicy(max_attempts=3, initial_interval=0.01))
    builder.add_edge(START, "flaky")
    builder.add_edge("flaky", "end")
    return builder


def caching(endpoint: ModelEndpoint) -> Any:
    """Results of nodes are cached, so that in the next turn LangGraph does not run them."""
    builder = StateGraph(MessagesState)
    policy = CachePolicy(key_func=lambda _: "same")
    builder.add_node("bees", asking(endpoint, "bees"), cache_policy=policy)
    builder.add_node("saying", lambda _: {"messages": [("ai", "I say.")]}, cache_policy=policy)
    builder.add_node("end", done)
    builder.add_edge(START, "bees")
    builder.add_edge("bees", "saying")
    builder.add_edge("saying", "end")
    return builder.compile(cache=InMemoryCache())


def failing(endpoint: ModelEndpoint) -> Any:
    """One of two parallel nodes fails."""

    async def fail(_: Any) -> Any:
        await asyncio.sleep(0.3)
        raise ValueError("no bees")

    return fan(MessagesState, done, bees=asking(endpoint, "bees"), fails=fail)


def stopping(_: ModelEndpoint) -> Any:
    """Two of three parallel nodes ask a person."""

    def question(name: str) -> Any:
        def node(_: Any) -> Any:
            return {"messages": [AIMessage(f"{name}: {interrupt(name)}")]}

        return node

    return fan(
        MessagesState,
        done,
        one=question("one"),
        two=question("two"),
        plain=lambda _: {"messages": [AIMessage("I am.")]},
    )


def asking_functions(_: ModelEndpoint) -> Any:
    """Two of three parallel functions ask a person."""

    @task
    async def ask(name: str) -> str:
        return str(interrupt(name))

    @task
    async def plain() -> str:
        return "done"

    @entrypoint()
    async def both(text: str) -> str:
        return " ".join(await asyncio.gather(ask("one"), plain(), ask("two")))

    return both


@tool
def research(topic: str) -> str:
    """Find out about a topic."""
    raise AssertionError("a node executes the call")


def researchers(endpoint: ModelEndpoint) -> Any:
    """Each call of a model is executed by a task in which a model speaks."""
    leading, asked = model(endpoint).bind_tools([research]), model(endpoint)

    async def lead(state: MessagesState) -> Any:
        return {"messages": [await leading.ainvoke(state["messages"])]}

    async def find(given: Any) -> Any:
        reply = await asked.ainvoke([HumanMessage(given["call"]["args"]["topic"])])
        return {"messages": [ToolMessage(f"report: {reply.content}", tool_call_id=given["call"]["id"])]}

    def route(state: MessagesState) -> Any:
        return [Send("find", {"call": call}) for call in state["messages"][-1].tool_calls] or END

    builder = chain(lead=lead)
    builder.add_node("find", find)
    builder.add_conditional_edges("lead", route, ["find", END])
    builder.add_edge("find", "lead")
    return builder
