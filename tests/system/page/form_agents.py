# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false, reportUnknownVariableType=false, reportArgumentType=false
"""Graphs with structured input, for the form of the page."""

from dataclasses import dataclass, field
from typing import Any, Literal

from langgraph.graph import START, StateGraph
from langgraph.runtime import Runtime
from pydantic import BaseModel, Field


class Trip(BaseModel):
    """A trip to plan: no text that could be a question."""

    destinations: list[str] = Field(description="Where to go, in this order")
    days: int = Field(ge=1, le=30, description="How long the trip takes")
    budget: float | None = None
    pace: Literal["slow", "fast"] = "slow"
    by_train: bool = False
    plan: str | None = None


def plan(state: Trip) -> dict[str, Any]:
    means = "by train" if state.by_train else "on foot"
    return {"plan": f"{state.days} days in {' and '.join(state.destinations)}, {state.pace}, {means}"}


@dataclass
class Article:
    topic: str
    audience: str
    sections: list[str] = field(default_factory=list)
    article: str = ""


@dataclass
class Voice:
    tone: Literal["calm", "lively"] = "calm"


def write(state: Article, runtime: Runtime[Voice]) -> dict[str, Any]:
    return {"article": f"A {runtime.context.tone} text about {state.topic}, for {state.audience}."}


def graph(node: Any, state: Any, **options: Any) -> Any:
    builder = StateGraph(state, **options)
    builder.add_node("only", node)
    builder.add_edge(START, "only")
    return builder.compile()


trip = graph(plan, Trip)
writer = graph(write, Article, context_schema=Voice)
