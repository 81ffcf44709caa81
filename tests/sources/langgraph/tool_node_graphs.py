# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownParameterType=false, reportUnknownArgumentType=false, reportUnknownLambdaType=false, reportArgumentType=false, reportIndexIssue=false, reportAttributeAccessIssue=false, reportMissingTypeArgument=false
"""Hand-written graphs whose nodes run tools themselves, without LangGraph's `ToolNode`."""

import asyncio
import json
import operator
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from typing import Annotated, Any

from langchain_core.language_models.fake_chat_models import FakeMessagesListChatModel
from langchain_core.messages import AIMessage, SystemMessage, ToolMessage
from langchain_core.tools import tool
from langgraph.func import entrypoint, task
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.types import Command, Send, interrupt
from typing_extensions import TypedDict

from tests.sources.langgraph.graphs import chain, model_node
from tests.sources.langgraph.langgraph_scenarios import add, fail, model, slow
from tests.sources.live_turn import ModelEndpoint

Update = Any
Act = Callable[[Any], Awaitable[Update]]


@tool
def weather(city: str) -> dict[str, Any]:
    """Return the weather of a city."""
    return {"city": city, "degrees": 21}


@tool
def multiply(a: int, b: int) -> int:
    """Multiply two numbers."""
    return a * b


@tool
def count(items: list[str]) -> int:
    """Count items."""
    return len(items)


TOOLS = [add, slow, fail, weather, multiply]
BY_NAME: dict[str, Any] = {one.name: one for one in TOOLS}


class AddedState(TypedDict):
    """Messages stay in the form in which a node returns them."""

    messages: Annotated[list[Any], operator.add]


class ListState(TypedDict):
    """No reducer: a node returns all messages."""

    messages: list[Any]


class ResultsState(MessagesState):
    results: Annotated[list[Any], operator.add]


def calls_of(state: Any) -> list[Any]:
    last = state["messages"][-1]
    return last["tool_calls"] if isinstance(last, dict) else last.tool_calls


def loop(
    endpoint: ModelEndpoint,
    act: Any,
    schema: Any = MessagesState,
    *,
    prompt: Callable[[Any], list[Any]] = lambda state: state["messages"],
    after: str = "think",
) -> Any:
    """A model node, a tool node, and an edge back, or to the end."""
    builder = chain(schema, think=model_node(model(endpoint).bind_tools(TOOLS), prompt))
    builder.add_node("act", act)
    builder.add_conditional_edges("think", lambda state: "act" if calls_of(state) else END, ["act", END])
    builder.add_edge("act", after)
    return builder.compile()


# One call after the other, with the result in each form


def message_of(call: Any, result: Any) -> ToolMessage:
    return ToolMessage(content=result, tool_call_id=call["id"])


def dict_of(call: Any, result: Any) -> dict[str, Any]:
    return {"role": "tool", "content": result, "tool_call_id": call["id"]}


def typed_dict_of(call: Any, result: Any) -> dict[str, Any]:
    return {"type": "tool", "content": result, "tool_call_id": call["id"], "name": call["name"]}


def envelope_of(call: Any, result: Any) -> dict[str, Any]:
    """LangChain's serialized form."""
    kwargs = {"content": result, "tool_call_id": call["id"]}
    return {
        "lc": 1,
        "type": "constructor",
        "id": ["langchain", "schema", "messages", "ToolMessage"],
        "kwargs": kwargs,
    }


def dumped_message_of(call: Any, result: Any) -> ToolMessage:
    """As in LangGraph's how-to for a ReAct agent: the content is not what the tool returned."""
    return ToolMessage(content=json.dumps(result), name=call["name"], tool_call_id=call["id"])


def by_args(form: Callable[[Any, Any], Any]) -> Act:
    async def act(state: Any) -> Update:
        made = [form(call, await BY_NAME[call["name"]].ainvoke(call["args"])) for call in calls_of(state)]
        return {"messages": made}

    return act


async def by_call(state: Any) -> Update:
    return {"messages": [await BY_NAME[call["name"]].ainvoke(call) for call in calls_of(state)]}


def by_args_sync(state: Any) -> Update:
    return {"messages": [message_of(c, BY_NAME[c["name"]].invoke(c["args"])) for c in calls_of(state)]}


def in_a_pool(state: Any) -> Update:
    """Threads that get the context of the node, and so LangChain's callbacks."""
    calls = calls_of(state)
    with ThreadPoolExecutor() as pool:
        runs = [pool.submit(copy_context().run, BY_NAME[c["name"]].invoke, c["args"]) for c in calls]
        return {"messages": [dict_of(call, run.result()) for call, run in zip(calls, runs, strict=True)]}


def in_a_bare_pool(state: Any) -> Update:
    """Threads without the context: LangChain does not report these runs."""
    calls = calls_of(state)
    with ThreadPoolExecutor() as pool:
        runs = [pool.submit(BY_NAME[c["name"]].invoke, c["args"]) for c in calls]
        return {"messages": [dict_of(call, run.result()) for call, run in zip(calls, runs, strict=True)]}


async def gathered(state: Any) -> Update:
    calls = calls_of(state)
    results = await asyncio.gather(*(BY_NAME[call["name"]].ainvoke(call["args"]) for call in calls))
    return {"messages": [message_of(call, result) for call, result in zip(calls, results, strict=True)]}


async def alone(state: Any) -> Update:
    (call,) = calls_of(state)
    return {"messages": dict_of(call, await add.ainvoke(call["args"]))}


async def as_command(state: Any) -> Update:
    made = [dict_of(call, await BY_NAME[call["name"]].ainvoke(call["args"])) for call in calls_of(state)]
    return Command(update={"messages": made})


async def as_commands(state: Any) -> Update:
    return [
        Command(update={"messages": [dict_of(call, await BY_NAME[call["name"]].ainvoke(call["args"]))]})
        for call in calls_of(state)
    ]


async def with_more_arguments(state: Any) -> Update:
    """The node adds an argument that the model does not know."""
    made = [message_of(c, await BY_NAME[c["name"]].ainvoke({**c["args"], "seconds": 0.01})) for c in calls_of(state)]
    return {"messages": made}


async def with_converted_arguments(state: Any) -> Update:
    """The model writes numbers as texts, and the node converts them."""
    made: list[Any] = []
    for call in calls_of(state):
        args = {key: int(value) for key, value in call["args"].items()}
        made.append(message_of(call, f"sum: {await add.ainvoke(args)}"))
    return {"messages": made}


async def with_parsed_arguments(state: Any) -> Update:
    """The model writes a list as a text, and the node takes it apart."""
    made: list[Any] = []
    for call in calls_of(state):
        result = await count.ainvoke({"items": [item.strip() for item in call["args"]["items"].split(",")]})
        made.append(message_of(call, f"count: {result}"))
    return {"messages": made}


async def with_renamed_tools(state: Any) -> Update:
    """The names that the model uses are not those of the tools."""
    tools = {"sum": add, "forecast": weather}
    made = [message_of(call, f"it is {await tools[call['name']].ainvoke(call['args'])}") for call in calls_of(state)]
    return {"messages": made}


async def with_a_check_of_the_arguments(state: Any) -> Update:
    """Another tool gets the same arguments first."""
    made: list[Any] = []
    for call in calls_of(state):
        await multiply.ainvoke(call["args"])
        made.append(message_of(call, f"sum: {await add.ainvoke(call['args'])}"))
    return {"messages": made}


def plain_function(state: Any) -> Update:
    """No LangChain tool at all."""
    return {"messages": [message_of(call, f"{sum(call['args'].values())}") for call in calls_of(state)]}


def plain_function_dict(state: Any) -> Update:
    return {"messages": [dict_of(call, f"{sum(call['args'].values())}") for call in calls_of(state)]}


def without_results(endpoint: ModelEndpoint) -> Any:
    """The last node returns a message, and no result for the calls."""
    return loop(endpoint, lambda _: {"messages": [AIMessage("I did not wait.")]}, after=END)


def catching(form: Callable[[Any, str], Any]) -> Act:
    async def act(state: Any) -> Update:
        made: list[Any] = []
        for call in calls_of(state):
            try:
                made.append(message_of(call, await BY_NAME[call["name"]].ainvoke(call["args"])))
            except ValueError as error:
                made.append(form(call, str(error)))
        return {"messages": made}

    return act


def error_message_of(call: Any, error: str) -> ToolMessage:
    return ToolMessage(content=f"Error: {error}", tool_call_id=call["id"], status="error")


def error_dict_of(call: Any, error: str) -> dict[str, Any]:
    return {"role": "tool", "content": f"Error: {error}", "tool_call_id": call["id"], "status": "error"}


@tool("add")
def busy_add(a: int, b: int) -> str:
    """Add two numbers, but fail."""
    raise ValueError("busy")


async def retried_by_args(state: Any) -> Update:
    """The first attempt has the call's id and fails, the second one has only the arguments."""
    made: list[Any] = []
    for call in calls_of(state):
        try:
            made.append(await busy_add.ainvoke(call))
        except ValueError:
            made.append(message_of(call, await add.ainvoke(call["args"])))
    return {"messages": made}


async def retried_by_call(state: Any) -> Update:
    """The first attempt has only the arguments and fails, the second one has the call's id."""
    made: list[Any] = []
    for call in calls_of(state):
        try:
            made.append(message_of(call, await busy_add.ainvoke(call["args"])))
        except ValueError:
            made.append(await add.ainvoke(call))
    return {"messages": made}


async def retried_by_args_together(state: Any) -> Update:
    """All calls fail under their ids at the same time, and are then run at the same time with their arguments."""
    calls = calls_of(state)
    await asyncio.gather(*(busy_add.ainvoke(call) for call in calls), return_exceptions=True)
    return await gathered(state)


def looping(act: Any, schema: Any = MessagesState) -> Callable[[ModelEndpoint], Any]:
    return lambda endpoint: loop(endpoint, act, schema)


# Results elsewhere than in `messages`


def other_key(endpoint: ModelEndpoint) -> Any:
    async def act(state: Any) -> Update:
        return {"results": [dict_of(call, await add.ainvoke(call["args"])) for call in calls_of(state)]}

    return loop(endpoint, act, ResultsState, prompt=lambda state: [*state["messages"], *state.get("results", [])])


def tuples(endpoint: ModelEndpoint) -> Any:
    """A tuple cannot name its call, so no model accepts it: the graph answers by itself."""

    async def act(state: Any) -> Update:
        return {"messages": [("tool", await add.ainvoke(call["args"])) for call in calls_of(state)]}

    return _answering_itself(endpoint, act)


def tuples_of_functions(endpoint: ModelEndpoint) -> Any:
    return _answering_itself(
        endpoint, lambda state: {"messages": [("tool", str(sum(call["args"].values()))) for call in calls_of(state)]}
    )


def _answering_itself(endpoint: ModelEndpoint, act: Any) -> Any:
    think = model_node(model(endpoint).bind_tools(TOOLS))
    return chain(AddedState, think=think, act=act, answer=lambda _: {"messages": [("ai", "All done.")]})


# One task for each call


class Order:
    """Lets the tasks of a fan-out reach their steps only in this order."""

    def __init__(self, *steps: str) -> None:
        self._left = list(steps)
        self._changed = asyncio.Condition()

    async def reach(self, step: str) -> None:
        async with asyncio.timeout(20), self._changed:
            await self._changed.wait_for(lambda: self._left[0] == step)
            self._left.pop(0)
            self._changed.notify_all()


def call_alone(call: Any, _: Any) -> Any:
    return {"call": call}


def call_with_messages(call: Any, state: Any) -> Any:
    return {"call": call, "messages": state["messages"]}


def call_in_depth(call: Any, _: Any) -> Any:
    return {"work": {"calls": [call]}}


def call_as_text(call: Any, _: Any) -> Any:
    """A text in which the call cannot be found."""
    return {"text": json.dumps(call)}


def fan_out(endpoint: ModelEndpoint, steps: str, payload: Callable[[Any, Any], Any]) -> Any:
    """One task for each call, by `Send`. The message is not what the tool returned."""
    order = Order(*steps.split(", "))

    async def worker(given: Any) -> Update:
        call = json.loads(given["text"]) if "text" in given else given.get("call") or given["work"]["calls"][0]
        await order.reach(f"run {call['id']}")
        result = await BY_NAME[call["name"]].ainvoke(call["args"])
        await order.reach(f"end {call['id']}")
        return {"messages": [message_of(call, f"{call['id']}: {result}")]}

    def route(state: Any) -> Any:
        return [Send("worker", payload(call, state)) for call in calls_of(state)] or END

    builder = chain(think=model_node(model(endpoint).bind_tools(TOOLS)))
    builder.add_node("worker", worker)
    builder.add_conditional_edges("think", route, ["worker", END])
    builder.add_edge("worker", "think")
    return builder


def calls_without_ids(_: ModelEndpoint) -> Any:
    """The model gives its calls no ids."""
    calls: list[Any] = [{"name": "add", "args": args, "id": None} for args in ({"a": 2, "b": 3}, {"a": 7, "b": 3})]
    asked = FakeMessagesListChatModel(responses=[AIMessage("", tool_calls=calls)])

    async def act(state: Any) -> Update:
        results = [await add.ainvoke(call["args"]) for call in calls_of(state)]
        return {"messages": [{"role": "tool", "content": f"sum: {result}", "tool_call_id": ""} for result in results]}

    return chain(think=model_node(asked), act=act, answer=lambda _: {"messages": [AIMessage("All done.")]})


# Subgraphs


def tools_in_a_subgraph(endpoint: ModelEndpoint, act: Any) -> Any:
    """The model is in the graph, the node that runs its calls is in a subgraph."""
    return loop(endpoint, chain(act=act).compile())


def loop_in_a_subgraph(endpoint: ModelEndpoint, act: Any) -> Any:
    return chain(worker=loop(endpoint, act))


# All in one node


def one_node_loop(endpoint: ModelEndpoint) -> Any:
    """The node calls the model, runs the tools and calls it again; it returns all messages at its end."""
    asked = model(endpoint).bind_tools(TOOLS)

    async def work(state: MessagesState) -> Update:
        new: list[Any] = [await asked.ainvoke(state["messages"])]
        while new[-1].tool_calls:
            calls = new[-1].tool_calls
            new += [message_of(call, await BY_NAME[call["name"]].ainvoke(call["args"])) for call in calls]
            new.append(await asked.ainvoke([*state["messages"], *new]))
        return {"messages": new}

    return chain(work=work)


def one_node_without_a_model(_: ModelEndpoint) -> Any:
    """As a graph with a provider's own client: LangChain sees the runs of tools, and no model."""

    async def work(_: MessagesState) -> Update:
        call = {"id": "c1", "type": "function", "function": {"name": "add", "arguments": '{"a": 2, "b": 3}'}}
        total = await add.ainvoke({"a": 2, "b": 3})
        return {
            "messages": [
                {"role": "assistant", "content": "I add.", "tool_calls": [call]},
                {"role": "tool", "content": total, "tool_call_id": "c1"},
                {"role": "assistant", "content": f"It is {total}."},
            ]
        }

    return chain(work=work)


@task
async def call_tool(call: Any) -> dict[str, Any]:
    return dict_of(call, await add.ainvoke(call["args"]))


@entrypoint()
async def functional(_: list[Any]) -> list[Any]:
    """The functional API: the run of the tool is seen first, then its result, then the call."""
    asked = AIMessage("", tool_calls=[{"name": "add", "args": {"a": 2, "b": 3}, "id": "c1"}])
    result = await call_tool(asked.tool_calls[0])
    return [asked, result, {"role": "assistant", "content": "It is 5."}]


# Stops


def asking_after_the_tool(endpoint: ModelEndpoint) -> Any:
    """The node runs again when it resumes, and so does its tool."""

    async def act(state: Any) -> Update:
        made = [message_of(call, await add.ainvoke(call["args"])) for call in calls_of(state)]
        interrupt("Shall I continue?")
        return {"messages": made}

    return loop(endpoint, act)


def failing_after_the_tool(endpoint: ModelEndpoint) -> Any:
    async def act(state: Any) -> Update:
        for call in calls_of(state):
            await add.ainvoke(call["args"])
        raise RuntimeError("the node failed")

    return loop(endpoint, act)


# Messages of the assistant


def with_dict_messages(endpoint: ModelEndpoint, schema: Any = MessagesState) -> Any:
    """Assistant messages in all forms. The model's own reply is streamed, and returned as a dict."""
    asked = model(endpoint)

    async def think(_: Any) -> Update:
        reply = await asked.ainvoke([("user", "go")])
        return {"messages": [{"role": "assistant", "content": reply.content}]}

    return chain(
        schema,
        begin=lambda _: {"messages": [{"role": "assistant", "content": "I begin."}]},
        think=think,
        proceed=lambda _: {"messages": [("ai", "I proceed.")]},
        end=lambda _: Command(update={"messages": [{"type": "ai", "content": "I end."}]}),
    )


def with_whole_lists(endpoint: ModelEndpoint) -> Any:
    """Without a reducer each node returns all messages, also those that were there."""
    asked = model(endpoint)

    async def think(state: Any) -> Update:
        reply = await asked.ainvoke([("user", "go")])
        return {"messages": [*state["messages"], {"role": "assistant", "content": reply.content}]}

    def more(state: Any) -> Update:
        return {"messages": [*state["messages"], {"role": "assistant", "content": "And more."}]}

    return chain(ListState, begin=more, think=think, end=more)


def dicts_in_a_subgraph(_: ModelEndpoint) -> Any:
    """Messages of a subgraph are in the update of its node, too, as other objects."""
    call = {"id": "c1", "type": "function", "function": {"name": "add", "arguments": '{"a": 2, "b": 3}'}}
    asked = {"role": "assistant", "content": "I add.", "tool_calls": [call]}
    inner = chain(
        ask=lambda _: {"messages": [asked]},
        act=lambda state: {"messages": [dict_of(c, "5") for c in calls_of(state)]},
    )
    answer = {"role": "assistant", "content": "It is 5."}
    return chain(worker=inner.compile(), end=lambda _: {"messages": [answer]})


# The graph of a tutorial


class CountingState(TypedDict):
    messages: Annotated[list[Any], operator.add]
    llm_calls: int


def tutorial(endpoint: ModelEndpoint) -> Any:
    """An agent in the manner of LangGraph's quickstart: ordinary functions, arguments by `invoke`, counted calls."""
    tools = [add, multiply]
    tools_by_name = {one.name: one for one in tools}
    model_with_tools = model(endpoint).bind_tools(tools)

    def llm_call(state: CountingState) -> Update:
        prompt = [SystemMessage("You do arithmetic."), *state["messages"]]
        return {"messages": [model_with_tools.invoke(prompt)], "llm_calls": state.get("llm_calls", 0) + 1}

    def tool_node(state: CountingState) -> Update:
        result: list[Any] = []
        for tool_call in state["messages"][-1].tool_calls:
            observation = tools_by_name[tool_call["name"]].invoke(tool_call["args"])
            result.append(ToolMessage(content=observation, tool_call_id=tool_call["id"]))
        return {"messages": result}

    def should_continue(state: CountingState) -> str:
        return "tool_node" if state["messages"][-1].tool_calls else END

    builder = chain(CountingState, llm_call=llm_call)
    builder.add_node("tool_node", tool_node)
    builder.add_conditional_edges("llm_call", should_continue, ["tool_node", END])
    builder.add_edge("tool_node", "llm_call")
    return builder


# A supervisor and its workers


class WorkerState(TypedDict):
    worker_messages: Annotated[list[Any], operator.add]
    report: str


class SupervisorState(MessagesState):
    supervisor_messages: Annotated[list[Any], operator.add]


@tool
def delegate(topic: str) -> str:
    """Let a worker find out about a topic."""
    raise AssertionError("the node runs a graph in place of this tool")


def supervised(endpoint: ModelEndpoint) -> Any:
    """A supervisor with a node that runs workers, which are graphs, in parallel; only one key is `messages`."""
    leading, working = model(endpoint).bind_tools([delegate]), model(endpoint).bind_tools([add, slow])

    async def work(state: WorkerState) -> Update:
        return Command(update={"worker_messages": [await working.ainvoke(state["worker_messages"])]}, goto="use_tools")

    async def use_tools(state: WorkerState) -> Update:
        last = state["worker_messages"][-1]
        if not last.tool_calls:
            return Command(update={"report": last.content}, goto=END)
        results = await asyncio.gather(*(BY_NAME[call["name"]].ainvoke(call["args"]) for call in last.tool_calls))
        made = [message_of(call, result) for call, result in zip(last.tool_calls, results, strict=True)]
        return Command(update={"worker_messages": made}, goto="work")

    worker_builder = StateGraph(WorkerState)
    worker_builder.add_node("work", work, destinations=("use_tools",))
    worker_builder.add_node("use_tools", use_tools, destinations=("work", END))
    worker_builder.add_edge(START, "work")
    worker = worker_builder.compile()

    async def lead(state: SupervisorState) -> Update:
        messages = state.get("supervisor_messages") or [("user", "lead")]
        new: list[Any] = [] if state.get("supervisor_messages") else [("user", "lead")]
        return {"supervisor_messages": [*new, await leading.ainvoke(messages)]}

    async def run_workers(state: SupervisorState) -> Update:
        calls = state["supervisor_messages"][-1].tool_calls
        tasks = [worker.ainvoke({"worker_messages": [("user", f"work: {call['args']['topic']}")]}) for call in calls]
        reports = [result["report"] for result in await asyncio.gather(*tasks)]
        return {"supervisor_messages": [message_of(c, report) for c, report in zip(calls, reports, strict=True)]}

    builder = chain(SupervisorState, lead=lead)
    builder.add_node("run_workers", run_workers)
    builder.add_node("answer", lambda _: {"messages": [AIMessage("Reported.")]})
    builder.add_conditional_edges(
        "lead", lambda state: "run_workers" if state["supervisor_messages"][-1].tool_calls else "answer"
    )
    builder.add_edge("run_workers", "lead")
    return builder
