"""Sync functions that a framework would call on the event loop run in threads."""

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

from limelight import current
from limelight.events import RunFinished
from tests.sources.agno.agno_scenarios import plain
from tests.sources.langgraph.graphs import chain
from tests.sources.langgraph.langgraph_scenarios import model
from tests.sources.live_turn import ModelEndpoint, run_agent

pytestmark = pytest.mark.usefixtures("agno_models")
SCRIPT = "- steps: [{text: All done.}]"
Heard = list[tuple[str, str]]


def hooked(hook: Callable[..., Any]) -> Callable[[ModelEndpoint, Heard], Any]:
    def make(endpoint: ModelEndpoint, heard: Heard) -> Any:
        return create_agent(model(endpoint), [], middleware=[hook(lambda state, runtime: note(heard))])

    return make


def nested(endpoint: ModelEndpoint, heard: Heard) -> Any:
    """A graph with a hook, as a node of another one."""
    inner = hooked(before_model)(endpoint, heard)
    return chain(inner=inner, last=lambda _: {"messages": [AIMessage("All done.")]}).compile()


def note(heard: Heard) -> None:
    context = current()
    heard.append((threading.current_thread().name, context.session_id if context else ""))


def pre_hook(endpoint: ModelEndpoint, heard: Heard) -> Any:
    def check(run_input: Any) -> None:
        note(heard)

    return plain(endpoint, pre_hooks=[check])


def post_hook(endpoint: ModelEndpoint, heard: Heard) -> Any:
    def check(run_output: Any) -> None:
        note(heard)

    return plain(endpoint, post_hooks=[check])


def instructions(endpoint: ModelEndpoint, heard: Heard) -> Any:
    def instruct(agent: Any) -> str:
        note(heard)
        return f"You are {agent.name}."

    return plain(endpoint, instructions=instruct)


def retriever(endpoint: ModelEndpoint, heard: Heard) -> Any:
    def find(query: str, num_documents: int | None = None) -> list[dict[str, str]]:
        note(heard)
        return [{"content": query}]

    return plain(endpoint, knowledge_retriever=find, add_knowledge_to_context=True)


CASES: dict[str, Callable[[ModelEndpoint, Heard], Any]] = {
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
async def test_sync_function_runs_in_a_thread_with_the_context_of_its_run(case: str, tmp_path: Path) -> None:
    heard: Heard = []
    run = await run_agent(lambda endpoint: CASES[case](endpoint, heard), SCRIPT, tmp_path, session_id="a")
    assert isinstance(run.terminal, RunFinished), run.terminal
    assert run.answer == "All done."
    assert heard and threading.current_thread().name not in {thread for thread, _ in heard}
    assert {session for _, session in heard} == {"a"}
