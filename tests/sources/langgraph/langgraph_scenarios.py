"""LangGraph's cases of the scenarios: graphs of deepagents and LangChain, their tools and scripts."""

# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownParameterType=false
# The frameworks' own types are partly unknown.

import asyncio
import time
from typing import Any, TypedDict

from deepagents import create_deep_agent
from langchain.agents import create_agent
from langchain.agents.middleware import HumanInTheLoopMiddleware, TodoListMiddleware
from langchain.tools import ToolRuntime
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI
from langgraph.graph import StateGraph
from pydantic import SecretStr

from limelight import status
from tests.sources.conformance import Case
from tests.sources.live_turn import ModelEndpoint


@tool
def add(a: int, b: int) -> str:
    """Add two numbers."""
    return str(a + b)


@tool
async def slow(name: str, seconds: float) -> str:
    """Take a while."""
    await asyncio.sleep(seconds)
    return f"{name} is done"


@tool
def nap(seconds: float) -> str:
    """Block for a while."""
    status("napping")
    time.sleep(seconds)
    return "rested"


@tool
def fail(reason: str) -> str:
    """Fail."""
    raise ValueError(reason)


@tool
def big(size: int) -> str:
    """Return a lot."""
    return "x" * size


@tool
def danger(path: str) -> str:
    """Remove a file."""
    return f"{path} is gone"


@tool
def talk(runtime: ToolRuntime) -> str:
    """Speak while at work."""
    runtime.emit_output_delta("half")
    runtime.emit_output_delta("way\n")
    return "there"


TOOLS = [add, slow, fail, big, danger, talk, nap]


class ReasoningChatOpenAI(ChatOpenAI):
    """Keeps the reasoning that OpenAI-compatible servers send and ChatOpenAI drops."""

    def _convert_chunk_to_generation_chunk(
        self, chunk: Any, default_chunk_class: Any, base_generation_info: Any
    ) -> Any:
        made = super()._convert_chunk_to_generation_chunk(chunk, default_chunk_class, base_generation_info)
        for choice in chunk.get("choices") or ():
            if made is not None and (thought := (choice.get("delta") or {}).get("reasoning_content")):
                made.message.additional_kwargs["reasoning_content"] = thought
        return made


def model(endpoint: ModelEndpoint) -> ChatOpenAI:
    """The understudy. Connections are closed after each reply: LangChain keeps its clients beyond the end of a test."""
    return ReasoningChatOpenAI(
        model="understudy",
        base_url=endpoint.base_url,
        api_key=SecretStr(endpoint.key),
        stream_usage=True,
        max_retries=0,
        default_headers={"Connection": "close"},
    )


def plain(endpoint: ModelEndpoint, **options: Any) -> Any:
    """LangChain's agent."""
    return create_agent(model(endpoint), TOOLS, **options)


def deep(endpoint: ModelEndpoint, **helper: Any) -> Any:
    """deepagents' agent, with todos and a helper."""
    helping = {"name": "helper", "description": "Helps.", "system_prompt": "You help.", "tools": TOOLS, **helper}
    return create_deep_agent(
        model=model(endpoint),
        tools=TOOLS,
        middleware=[TodoListMiddleware()],
        subagents=[helping],  # pyright: ignore[reportArgumentType]
    )


class Doubled(TypedDict):
    question: str
    answer: str


def _double(state: Doubled) -> dict[str, str]:
    return {"answer": f"{state['question']} {state['question']}"}


def small_graph() -> Any:
    """A graph without messages and without a model."""
    builder = StateGraph(Doubled)
    builder.add_node("double", _double)
    builder.set_entry_point("double")
    return builder


def careful(endpoint: ModelEndpoint) -> Any:
    return plain(endpoint, middleware=[HumanInTheLoopMiddleware({"danger": True})])


def careful_helper(endpoint: ModelEndpoint) -> Any:
    return deep(endpoint, interrupt_on={"danger": True})


def answering(*turns: str) -> str:
    return "\n".join([*turns, "- steps: [{text: All done.}]"])


ONE_TOOL = answering("- steps: [{tool_calls: [{name: add, arguments: {a: 2, b: 3}}]}]")
DANGER = answering("- steps: [{tool_calls: [{name: danger, arguments: {path: /tmp/x}}]}]")
HELPER = """
- match: "help:"
  turns:
    - steps: [{tool_calls: [{name: %s, arguments: %s}]}]
    - steps: [{text: The sum is five.}]
- turns:
    - steps: [{tool_calls: [{name: task, arguments: {description: "help: now", subagent_type: helper}}]}]
    - steps: [{text: All done.}]
"""
TWO_HELPERS = """
- match: "help: one"
  turns:
    - steps: [{tool_calls: [{name: slow, arguments: {name: first, seconds: 2}}]}]
    - steps: [{text: First.}]
- match: "help: two"
  turns:
    - steps: [{tool_calls: [{name: slow, arguments: {name: second, seconds: 0.05}}]}]
    - steps: [{text: Second.}]
- turns:
    - steps:
        - tool_calls:
            - {name: task, arguments: {description: "help: one", subagent_type: helper}}
            - {name: task, arguments: {description: "help: two", subagent_type: helper}}
    - steps: [{text: All done.}]
"""
PLAN = answering(
    "- steps: [{tool_calls: [{name: write_todos, arguments: {todos: [{content: Look, status: in_progress}]}}]}]",
    "- steps: [{tool_calls: [{name: write_todos, arguments: {todos: [{content: Look, status: completed}]}}]}]",
)
FIFTY = answering(
    "- steps:\n    - tool_calls:\n"
    + "\n".join(f"        - {{name: add, arguments: {{a: {n}, b: 1}}, id: call_{n}}}" for n in range(50))
)

CASES: dict[str, Case] = {
    "text": Case(plain, "- steps: [{delay: 0.2}, {text: All done.}]"),  # slow enough for a commit between
    "reasoning": Case(plain, "- steps: [{reasoning: Let me think.}, {text: All done.}]"),
    "one_tool": Case(plain, ONE_TOOL),
    "argument_deltas": Case(plain, ONE_TOOL),
    "parallel_tools": Case(
        plain,
        answering(
            "- steps: [{tool_calls: [{name: slow, arguments: {name: first, seconds: 0.4}},"
            " {name: slow, arguments: {name: second, seconds: 0.05}}]}]"
        ),
    ),
    "tool_error": Case(plain, answering("- steps: [{tool_calls: [{name: fail, arguments: {reason: no such file}}]}]")),
    "malformed_args": Case(plain, answering("""- steps: [{tool_calls: [{name: add, raw: '{"a": 2, "b": '}]}]""")),
    "unknown_tool": Case(plain, answering("- steps: [{tool_calls: [{name: nothing_like_it, arguments: {a: 1}}]}]")),
    "sub_agent": Case(deep, HELPER % ("add", "{a: 2, b: 3}")),
    "parallel_sub_agents": Case(deep, TWO_HELPERS),
    "plan": Case(deep, PLAN),
    "steps": Case(plain, ONE_TOOL),
    "usage": Case(
        plain,
        "- steps: [{tool_calls: [{name: add, arguments: {a: 2, b: 3}}]}, {usage: {input: 100, output: 7}}]\n"
        "- steps: [{text: All done.}, {usage: {input: 100, output: 7}}]",
    ),
    "output_deltas": Case(plain, answering("- steps: [{tool_calls: [{name: talk, arguments: {}}]}]")),
    "approval": Case(careful, DANGER),
    "approval_edited": Case(careful, DANGER),
    "approval_rejected": Case(careful, DANGER),
    "two_approvals": Case(
        careful,
        answering(
            "- steps: [{tool_calls: [{name: danger, arguments: {path: /tmp/x}},"
            " {name: danger, arguments: {path: /tmp/y}}]}]"
        ),
    ),
    "approval_in_sub_agent": Case(careful_helper, HELPER % ("danger", "{path: /tmp/x}")),
    "model_error": Case(plain, "- steps: [{error: {status: 500, message: out of order}}]"),
    "cut_stream": Case(plain, "- steps: [{text: All is}, {cut: true}]"),
    "big_result": Case(plain, answering("- steps: [{tool_calls: [{name: big, arguments: {size: 50000}}]}]")),
    "split_unicode": Case(plain, "- steps: [{text: Grüße 👩‍👩‍👧 世界 All done.}]"),
    "fifty_tools": Case(plain, FIFTY),
    "stopped_in_a_tool": Case(
        plain, answering("- steps: [{tool_calls: [{name: slow, arguments: {name: first, seconds: 30}}]}]")
    ),
    "stopped_in_a_sync_tool": Case(plain, answering("- steps: [{tool_calls: [{name: nap, arguments: {seconds: 1}}]}]")),
}
