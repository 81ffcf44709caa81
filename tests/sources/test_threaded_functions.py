"""Ordinary functions of a framework's own run beside the event loop, not on it."""

# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false, reportUnknownLambdaType=false, reportArgumentType=false
# The frameworks' own types are partly unknown.

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain.agents.middleware import after_agent, after_model, before_agent, before_model
from langchain_core.messages import AIMessage
from langgraph.graph import START, MessagesState, StateGraph

from limelight import current
from limelight.events import RunFinished
from tests.sources.agno.agno_scenarios import plain
from tests.sources.langgraph.langgraph_scenarios import model
from tests.sources.live_turn import Stage, play

pytestmark = pytest.mark.usefixtures("agno_models")
SCRIPT = "- steps: [{text: All done.}]"
Heard = list[tuple[str, str]]


def hooked(hook: Callable[..., Any]) -> Callable[[Stage, Heard], Any]:
    def make(stage: Stage, heard: Heard) -> Any:
        return create_agent(model(stage), [], middleware=[hook(lambda state, runtime: note(heard))])

    return make


def nested(stage: Stage, heard: Heard) -> Any:
    """A graph with a hook, as a node of another one."""
    builder = StateGraph(MessagesState)
    builder.add_node("inner", hooked(before_model)(stage, heard))
    builder.add_node("last", lambda _: {"messages": [AIMessage("All done.")]})
    builder.add_edge(START, "inner")
    builder.add_edge("inner", "last")
    return builder.compile()


def note(heard: Heard) -> None:
    context = current()
    heard.append((threading.current_thread().name, context.session_id if context else ""))


def pre_hook(stage: Stage, heard: Heard) -> Any:
    def check(run_input: Any) -> None:
        note(heard)

    return plain(stage, pre_hooks=[check])


def post_hook(stage: Stage, heard: Heard) -> Any:
    def check(run_output: Any) -> None:
        note(heard)

    return plain(stage, post_hooks=[check])


def instructions(stage: Stage, heard: Heard) -> Any:
    def tell(agent: Any) -> str:
        note(heard)
        return f"You are {agent.name}."

    return plain(stage, instructions=tell)


def retriever(stage: Stage, heard: Heard) -> Any:
    def find(query: str, num_documents: int | None = None) -> list[dict[str, str]]:
        note(heard)
        return [{"content": query}]

    return plain(stage, knowledge_retriever=find, add_knowledge_to_context=True)


CASES: dict[str, Callable[[Stage, Heard], Any]] = {
    "before_agent": hooked(before_agent),
    "before_model": hooked(before_model),
    "after_model": hooked(after_model),
    "after_agent": hooked(after_agent),
    "in a graph in a graph": nested,
    "pre_hooks": pre_hook,
    "post_hooks": post_hook,
    "instructions": instructions,
    "knowledge_retriever": retriever,
}


@pytest.mark.parametrize("case", CASES)
async def test_it_runs_in_a_thread_and_knows_for_whom(case: str, tmp_path: Path) -> None:
    heard: Heard = []
    run = await play(lambda stage: CASES[case](stage, heard), SCRIPT, tmp_path, session_id="a")
    assert isinstance(run.terminal, RunFinished), run.terminal
    assert run.answer == "All done."
    assert heard and threading.current_thread().name not in {thread for thread, _ in heard}
    assert {session for _, session in heard} == {"a"}
