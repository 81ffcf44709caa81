"""smolagents' cases of the scenarios: its agents, their tools, and the scripts of their model."""

# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUntypedFunctionDecorator=false, reportUnknownParameterType=false, reportUnknownArgumentType=false
# The framework's own types are partly unknown.

import asyncio
import threading
import time
from collections.abc import Callable
from datetime import date
from typing import Any

from PIL import Image
from smolagents import CodeAgent, OpenAIModel, Tool, ToolCallingAgent, tool

from limelight import status
from tests.sources.conformance import Case
from tests.sources.live_turn import ModelEndpoint


@tool
def add(a: int, b: int) -> int:
    """Add two numbers.

    Args:
        a: One.
        b: The other.
    """
    return a + b


@tool
def slow(name: str, seconds: float) -> str:
    """Take a while.

    Args:
        name: Of whom.
        seconds: How long.
    """
    time.sleep(seconds)
    return f"{name} is done"


class Patient(Tool):
    """`slow` as a coroutine function."""

    name = "slow"
    description = "Take a while."
    inputs = {  # noqa: RUF012  (as smolagents has it)
        "name": {"type": "string", "description": "Of whom."},
        "seconds": {"type": "number", "description": "How long."},
    }
    output_type = "string"

    async def forward(self, name: str, seconds: float) -> str:
        await asyncio.sleep(seconds)
        return f"{name} is done"


@tool
def nap(seconds: float) -> str:
    """Block for a while.

    Args:
        seconds: How long.
    """
    status("napping")
    time.sleep(seconds)
    return "rested"


@tool
def fail(reason: str) -> str:
    """Fail.

    Args:
        reason: Why.
    """
    raise ValueError(reason)


@tool
def big(size: int) -> str:
    """Return a lot.

    Args:
        size: How much.
    """
    return "x" * size


class Thing:
    def __str__(self) -> str:
        return "<odd thing>"


class Unprintable:
    def __str__(self) -> str:
        raise RuntimeError("no words")


ODD: dict[str, Callable[[], Any]] = {
    "none": lambda: None,
    "dict": lambda: {1: "one", "when": date(2001, 2, 3), "kinds": {1}},
    "unicode": lambda: "half of a pair: \ud800",
    "object": Thing,
    "unprintable": Unprintable,
    "huge": lambda: "y" * 5_000_000,
    "bytes": lambda: b"\x00\x01\x02",
    "image": lambda: Image.new("RGB", (4, 4), "red"),
}
"""Unusual results of a tool."""


@tool
def odd(kind: str) -> Any:
    """Return something odd.

    Args:
        kind: What.
    """
    return ODD[kind]()


TOOLS = [add, slow, fail, big]


def model_at(endpoint: ModelEndpoint, **options: Any) -> Any:
    return OpenAIModel(
        model_id="understudy",
        api_base=endpoint.base_url,
        api_key=endpoint.key,
        client_kwargs={"max_retries": 0},
        **options,
    )


def calling(*tools: Any, **options: Any) -> Callable[[ModelEndpoint], object]:
    """A factory of ToolCallingAgents with these tools, or with all."""

    def make(endpoint: ModelEndpoint) -> object:
        return ToolCallingAgent(tools=list(tools) or TOOLS, model=model_at(endpoint), **options)

    return make


def coding(*tools: Any, **options: Any) -> Callable[[ModelEndpoint], object]:
    """The same for CodeAgents."""

    def make(endpoint: ModelEndpoint) -> object:
        options.setdefault("additional_authorized_imports", ["time"])
        return CodeAgent(tools=list(tools) or TOOLS, model=model_at(endpoint), **options)

    return make


def leading(
    manager: Callable[..., Callable[[ModelEndpoint], object]], helper: Callable[..., Callable[[ModelEndpoint], object]]
) -> Callable[[ModelEndpoint], object]:
    """A factory of agents of one kind that manage a helper of the other."""

    def make(endpoint: ModelEndpoint) -> object:
        managed = helper(name="helper", description="Helps.")(endpoint)
        return manager(managed_agents=[managed])(endpoint)

    return make


TEXT = """
- steps:
    - text: I know this one.
    - tool_calls: [{name: final_answer, arguments: {answer: "It was easy. All done."}}]
"""

REASONING = """
- steps:
    - text: Let me think.
    - tool_calls: [{name: final_answer, arguments: {answer: All done.}}]
"""

DONE = """
- steps:
    - tool_calls: [{name: final_answer, arguments: {answer: All done.}}]
"""

ONE_TOOL = """
- steps:
    - text: I add them.
    - tool_calls: [{name: add, arguments: {a: 2, b: 3}}]
    - usage: {input: 100, output: 7}
- steps:
    - tool_calls: [{name: final_answer, arguments: {answer: All done.}}]
    - usage: {input: 100, output: 7}
"""

PARALLEL_TOOLS = f"""
- steps:
    - tool_calls:
        - {{name: slow, arguments: {{name: first, seconds: 0.4}}}}
        - {{name: slow, arguments: {{name: second, seconds: 0.05}}}}
{DONE}"""

TOOL_ERROR = f"""
- steps:
    - tool_calls: [{{name: fail, arguments: {{reason: no such file}}}}]
{DONE}"""

MALFORMED_ARGS = f"""
- steps:
    - tool_calls: [{{name: add, raw: '{{"a": 2, "b": '}}]
{DONE}"""

UNKNOWN_TOOL = f"""
- steps:
    - tool_calls: [{{name: nothing_like_it, arguments: {{a: 2}}}}]
{DONE}"""

SUB_AGENT = """
- match: add two and three
  turns:
    - steps:
        - text: I am the helper.
        - tool_calls: [{name: add, arguments: {a: 2, b: 3}}]
    - steps:
        - tool_calls: [{name: final_answer, arguments: {answer: The sum is five.}}]
- turns:
    - steps:
        - text: Somebody else can do that.
        - tool_calls: [{name: helper, arguments: {task: add two and three}}]
    - steps:
        - tool_calls: [{name: final_answer, arguments: {answer: All done.}}]
"""

PARALLEL_SUB_AGENTS = """
- match: the first job
  turns:
    - steps: [{tool_calls: [{name: slow, arguments: {name: first, seconds: 2}}]}]
    - steps: [{tool_calls: [{name: final_answer, arguments: {answer: The first is done.}}]}]
- match: the second job
  turns:
    - steps: [{tool_calls: [{name: slow, arguments: {name: second, seconds: 0.05}}]}]
    - steps: [{tool_calls: [{name: final_answer, arguments: {answer: The second is done.}}]}]
- turns:
    - steps:
        - tool_calls:
            - {name: helper, arguments: {task: do the first job}}
            - {name: helper, arguments: {task: do the second job}}
    - steps: [{tool_calls: [{name: final_answer, arguments: {answer: All done.}}]}]
"""

# The request for the second plan does not contain the first: it looks like that of the first action, and gets its text.
PLAN = """
- match: facts survey
  turns: [{steps: [{text: "1. Add. 2. Give the answer."}]}]
- turns:
    - steps: [{text: This place is the plan's.}]
    - steps:
        - text: First I add, then I give the answer.
        - tool_calls: [{name: add, arguments: {a: 2, b: 3}}]
    - steps: [{text: This place is the second plan's.}]
    - steps: [{tool_calls: [{name: final_answer, arguments: {answer: All done.}}]}]
"""

CODE = """
- steps:
    - text: |
        Thought: I print, and add.
        <code>
        import time
        print("one")
        time.sleep(0.2)
        print("two")
        total = add(2, b=3)
        total * 2
        </code>
- steps:
    - text: |
        Thought: That is it.
        <code>
        final_answer("All done.")
        </code>
"""

MODEL_ERROR = """
- steps:
    - error: {status: 500, message: The model is on fire.}
"""

CUT_STREAM = """
- steps:
    - text: It was a dark and stormy
    - cut: true
"""

BIG_RESULT = f"""
- steps:
    - tool_calls: [{{name: big, arguments: {{size: 50000}}}}]
{DONE}"""

SPLIT_UNICODE = """
- steps:
    - text: Grüße 👩‍👩‍👧 世界
    - tool_calls: [{name: final_answer, arguments: {answer: "Grüße 👩‍👩‍👧 世界 All done."}}]
"""

FIFTY_TOOLS = (
    "- steps:\n    - tool_calls:\n"
    + "".join(f"        - {{name: add, arguments: {{a: {n}, b: 1}}}}\n" for n in range(50))
    + DONE
)

TWO_TURNS = """
- match: sum
  turns:
    - steps: [{text: I add.}, {tool_calls: [{name: add, arguments: {a: 2, b: 3}}]}]
    - steps: [{tool_calls: [{name: final_answer, arguments: {answer: It is five.}}]}]
- match: and what
  turns: [{steps: [{tool_calls: [{name: final_answer, arguments: {answer: It was the sum.}}]}]}]
- match: hello
  turns: [{steps: [{tool_calls: [{name: final_answer, arguments: {answer: Hello!}}]}]}]
"""
"""Conversations of two turns."""

LONG = f"- steps: [{{tool_calls: [{{name: slow, arguments: {{name: first, seconds: 30}}}}]}}]\n{DONE}"
NAP = f"- steps: [{{tool_calls: [{{name: nap, arguments: {{seconds: 1}}}}]}}]\n{DONE}"

CASES = {
    "text": Case(calling(), TEXT),
    "reasoning": Case(calling(), REASONING),
    "one_tool": Case(calling(), ONE_TOOL),
    "argument_deltas": Case(calling(), ONE_TOOL),
    "parallel_tools": Case(calling(), PARALLEL_TOOLS),
    "tool_error": Case(calling(), TOOL_ERROR),
    "malformed_args": Case(calling(), MALFORMED_ARGS),
    "unknown_tool": Case(calling(), UNKNOWN_TOOL),
    "sub_agent": Case(leading(calling, calling), SUB_AGENT),
    "parallel_sub_agents": Case(leading(calling, calling), PARALLEL_SUB_AGENTS),
    "plan": Case(calling(planning_interval=1), PLAN),
    "steps": Case(calling(), ONE_TOOL),
    "usage": Case(calling(), ONE_TOOL),
    "code": Case(coding(), CODE),
    "model_error": Case(calling(), MODEL_ERROR),
    "cut_stream": Case(calling(), CUT_STREAM),
    "big_result": Case(calling(), BIG_RESULT),
    "split_unicode": Case(calling(), SPLIT_UNICODE),
    "fifty_tools": Case(calling(), FIFTY_TOOLS),
    "stopped_in_a_tool": Case(calling(Patient()), LONG),
    "stopped_in_a_sync_tool": Case(calling(nap), NAP),
}


def working() -> list[str]:
    """The threads of agents that run."""
    return [thread.name for thread in threading.enumerate() if thread.name.startswith("limelight-run_")]


def messages_of(steps: list[Any]) -> list[tuple[str, str]]:
    made = [message for step in steps for message in step.to_messages()]
    return [(str(message.role.value), message.content[0]["text"]) for message in made]
