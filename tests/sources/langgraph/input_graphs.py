# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownParameterType=false, reportUnknownArgumentType=false, reportArgumentType=false, reportAttributeAccessIssue=false, reportCallIssue=false, reportUnknownLambdaType=false
"""Graphs with structured input, context, `configurable` fields and a store, without a model."""

import datetime
import operator
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal, NotRequired, TypedDict

import typing_extensions
from langchain_core.messages import AIMessage, AnyMessage
from langchain_core.runnables import ConfigurableField, RunnableConfig, RunnablePassthrough
from langgraph.config import get_store
from langgraph.func import entrypoint
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.graph.message import add_messages
from langgraph.managed import RemainingSteps
from langgraph.runtime import Runtime
from langgraph.store.base import BaseStore
from langgraph.types import interrupt
from pydantic import BaseModel, Field


def node_graph(node: Callable[..., Any], state: Any, **schemas: Any) -> Any:
    builder = StateGraph(state, **schemas)
    builder.add_node("only", node)
    builder.add_edge(START, "only")
    return builder


# Input


class ReportInput(TypedDict):
    """An explicit input schema, whose keys are required."""

    topic: str
    audience: str
    style: NotRequired[Literal["short", "long"]]


class ReportState(ReportInput):
    report: str


def report(state: Any) -> dict[str, Any]:
    return {"report": f"{state['topic']} for {state['audience']}, {state.get('style', 'any length')}"}


def typed_dict_input() -> Any:
    return node_graph(report, ReportState, input_schema=ReportInput)


class Person(BaseModel):
    name: str
    born: datetime.date


class TripState(BaseModel):
    """A pydantic state: the required fields are enforced, and nested values are objects."""

    person: Person = Field(description="Who travels")
    days: int = Field(ge=1, le=30)
    places: Annotated[list[str], operator.add] = []
    plan: str | None = None


def pydantic_input() -> Any:
    def travel(state: TripState) -> dict[str, Any]:
        where = ", ".join(state.places) or "nowhere"
        return {"plan": f"{state.person.name} ({state.person.born.year}) spends {state.days} days in {where}"}

    return node_graph(travel, TripState)


@dataclass
class SurveyInput:
    company: str
    questions: dict[str, Any] = field(default_factory=lambda: {"size": "How large is it?"})
    notes: str | None = None


@dataclass
class SurveyState(SurveyInput):
    answer: str = ""


def dataclass_input() -> Any:
    def survey(state: SurveyState) -> dict[str, Any]:
        return {"answer": f"{state.company}: {', '.join(state.questions)}; {state.notes}"}

    return node_graph(survey, SurveyState, input_schema=SurveyInput)


class NumbersState(TypedDict):
    """A state without a text and without an input schema, so that no key is known to be required."""

    numbers: list[int]
    factor: int
    total: int


def numbers() -> Any:
    return node_graph(lambda state: {"total": sum(state["numbers"]) * state.get("factor", 1)}, NumbersState)


class LogLine(typing_extensions.TypedDict):  # pydantic describes only these on Python 3.11
    id: str
    question: str
    grade: int


class LogState(TypedDict):
    lines: list[LogLine]
    graded: list[str]


def partial_values() -> Any:
    """A graph whose nodes accept objects without all keys of their TypedDict."""
    return node_graph(lambda state: {"graded": [line["id"] for line in state["lines"] if "grade" in line]}, LogState)


class TopicMessages(MessagesState):
    topic: str
    remaining_steps: RemainingSteps


def messages_and_topic() -> Any:
    def reply(state: Any) -> dict[str, Any]:
        asked = state["messages"][-1].content if state.get("messages") else "nothing"
        return {"messages": [AIMessage(f"{asked} about {state.get('topic', 'anything')}")]}

    return node_graph(reply, TopicMessages)


class DraftState(TypedDict):
    task: str
    documents: list[str]
    draft: str


def one_text_and_work() -> Any:
    """The usual state of a hand-written graph: a question, and what the nodes derive from it."""
    return node_graph(lambda state: {"documents": ["a"], "draft": f"draft of {state['task']}"}, DraftState)


class Order(TypedDict):
    item: str
    count: int


@entrypoint()
def typed_function(order: Order) -> str:
    return f"{order['count']} x {order['item']}"


@dataclass
class Query:
    text: str
    limit: int = 3


@entrypoint()
def dataclass_function(query: Query) -> str:
    return f"{query.text} ({query.limit})"


@entrypoint()
def dict_function(inputs: dict) -> str:  # pyright: ignore[reportMissingTypeArgument]
    return ", ".join(f"{key}={value}" for key, value in inputs.items() if key != "messages") or "no values"


@entrypoint()
def text_function(text: str) -> str:
    return text.upper()


class UserInput(TypedDict):
    user_id: str
    amount: int


class UserState(UserInput):
    receipt: str


def needs_user() -> Any:
    return node_graph(
        lambda state: {"receipt": f"{state['user_id']} pays {state['amount']}"}, UserState, input_schema=UserInput
    )


class Unserializable:
    pass


class OddState(TypedDict):
    """Fields without a JSON form, beside those that have one."""

    name: str
    handler: Callable[[int], int]
    thing: Unserializable
    messages: Annotated[list[AnyMessage], add_messages]


def odd_types() -> Any:
    return node_graph(lambda state: {"name": "x"}, OddState)


# Context


@dataclass
class Persona:
    """A context whose first two fields are required."""

    tone: str
    language: Literal["en", "de"]
    user_id: str
    model: str = "small"


class PersonaModel(BaseModel):
    tone: str
    temperature: float = Field(default=0.5, ge=0, le=1)


class PersonaDict(TypedDict):
    tone: str
    user_name: str


def with_dataclass_context() -> Any:
    def speak(state: Any, runtime: Runtime[Persona]) -> dict[str, Any]:
        c = runtime.context
        return {"messages": [AIMessage(f"{c.tone} {c.language} {c.model} {c.user_id}")]}

    return node_graph(speak, MessagesState, context_schema=Persona)


def interrupted_with_context() -> Any:
    """Waits for a person, and then reads its context and its input."""

    def confirm(state: Any, runtime: Runtime[Persona]) -> dict[str, Any]:
        is_approved = interrupt("Go on?")
        return {"messages": [AIMessage(f"{is_approved} {runtime.context.tone} {state['topic']}")]}

    return node_graph(confirm, TopicMessages, context_schema=Persona)


def with_model_context() -> Any:
    def speak(state: Any, runtime: Runtime[PersonaModel]) -> dict[str, Any]:
        return {"messages": [AIMessage(f"{runtime.context.tone} {runtime.context.temperature}")]}

    return node_graph(speak, MessagesState, context_schema=PersonaModel)


def with_typed_dict_context() -> Any:
    def speak(state: Any, runtime: Runtime[PersonaDict]) -> dict[str, Any]:
        return {"messages": [AIMessage(f"{runtime.context.get('tone', 'no tone')}")]}

    return node_graph(speak, MessagesState, context_schema=PersonaDict)


def with_old_config(schema: Any = None) -> Any:
    """A node that reads `configurable`, with or without a declared schema."""

    def speak(state: Any, config: RunnableConfig) -> dict[str, Any]:
        configurable = config.get("configurable", {})
        return {"messages": [AIMessage(f"{configurable.get('tone', 'no tone')} {configurable['user_id']}")]}

    return node_graph(speak, MessagesState, context_schema=schema)


def with_configurable_node() -> Any:
    """A runnable with a `ConfigurableField` as a node."""

    plain = RunnablePassthrough.assign(messages=lambda _: [AIMessage("hi")])
    other = RunnablePassthrough.assign(messages=lambda _: [AIMessage("good day")])
    node = plain.configurable_alternatives(
        ConfigurableField(id="greeting", description="How to greet"), default_key="short", polite=other
    )
    return node_graph(node, MessagesState)


# Store


def counting_store() -> Any:
    """Counts the runs of each user, with sync access from a sync node."""

    def count(state: Any, *, store: BaseStore, config: RunnableConfig) -> dict[str, Any]:
        user = config.get("configurable", {})["user_id"]
        item = store.get(("counts", user), "runs")
        runs = (item.value["runs"] if item else 0) + 1
        store.put(("counts", user), "runs", {"runs": runs})
        return {"messages": [AIMessage(f"run {runs} of {user}")]}

    return node_graph(count, MessagesState)


def searching_store() -> Any:
    """Remembers what is said, with async access, and sync access on the event loop."""

    async def remember(state: Any) -> dict[str, Any]:
        store = get_store()
        text = state["messages"][-1].content
        await store.aput(("notes",), text, {"text": text})
        store.put(("sync",), text, {"text": text})
        found = await store.asearch(("notes",), query="anything", limit=10)
        names = sorted(item.value["text"] for item in found)
        return {"messages": [AIMessage(f"{', '.join(names)}; {len(store.search(('sync',)))}")]}

    return node_graph(remember, MessagesState)


@entrypoint()
async def function_store(text: str, *, store: BaseStore) -> str:
    await store.aput(("texts",), "last", {"text": text})
    item = await store.aget(("texts",), "last")
    return str(item.value["text"]) if item else ""
