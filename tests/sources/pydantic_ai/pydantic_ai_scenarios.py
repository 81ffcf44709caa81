"""pydantic-ai's cases of the scenarios: its agents, their tools, and the scripts of their model."""

import asyncio

from openai import AsyncOpenAI
from pydantic_ai import Agent
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider

from tests.sources.conformance import Case
from tests.sources.live_turn import ModelEndpoint

CLIENTS: list[AsyncOpenAI] = []
"""The clients of a test, which it closes in the loop that used them."""


async def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


async def slow(name: str, seconds: float) -> str:
    """Take a while."""
    await asyncio.sleep(seconds)
    return f"{name} is done"


async def fail(reason: str) -> str:
    """Fail."""
    raise ValueError(reason)


async def big(size: int) -> str:
    """Return a lot."""
    return "x" * size


def make(endpoint: ModelEndpoint) -> object:
    client = AsyncOpenAI(base_url=endpoint.base_url, api_key=endpoint.key, max_retries=0)
    CLIENTS.append(client)
    model = OpenAIChatModel("understudy", provider=OpenAIProvider(openai_client=client))
    return Agent(model, tools=[add, slow, fail, big])


def calls(*made: str, then: str = "All done.") -> str:
    """The script of a model that makes these calls in one reply, and then says a text."""
    return f"""
- steps:
    - tool_calls: [{", ".join(made)}]
    - usage: {{input: 100, output: 7}}
- steps:
    - text: {then}
    - usage: {{input: 100, output: 7}}
"""


ONE_TOOL = calls("{name: add, arguments: {a: 2, b: 3}}")
SCRIPTS = {
    "text": "- steps: [{text: Let me see. All done.}]",
    "reasoning": "- steps: [{reasoning: Let me think.}, {text: All done.}]",
    "one_tool": ONE_TOOL,
    "argument_deltas": ONE_TOOL,
    "parallel_tools": calls(
        "{name: slow, arguments: {name: first, seconds: 0.4}}", "{name: slow, arguments: {name: second, seconds: 0.05}}"
    ),
    "tool_error": calls("{name: fail, arguments: {reason: no such file}}"),
    "malformed_args": calls("""{name: add, raw: '{"a": 2, "b": '}"""),
    "unknown_tool": calls("{name: nothing_like_it, arguments: {}}"),
    "usage": ONE_TOOL,
    "model_error": "- steps: [{error: {status: 500, message: On fire.}}]",
    "cut_stream": "- steps: [{text: Half of a}, {cut: true}]",
    "big_result": calls("{name: big, arguments: {size: 50000}}"),
    "split_unicode": '- steps: [{text: "Grüße 👩‍👩‍👧 世界 All done."}]',
    "fifty_tools": calls(*(f"{{name: add, arguments: {{a: {n}, b: 1}}}}" for n in range(50))),
    "stopped_in_a_tool": calls("{name: slow, arguments: {name: first, seconds: 30}}"),
}
CASES = {name: Case(make, script) for name, script in SCRIPTS.items()}
