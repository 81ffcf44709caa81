"""Agno's cases of the scenarios: agents and teams, their tools, and the scripts of their model."""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# Agno's own types are partly unknown.

import asyncio
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

from agno.agent import Agent
from agno.models.openai import OpenAILike
from agno.run.agent import CustomEvent
from agno.team import Team
from agno.team.mode import TeamMode
from agno.tools import tool

from limelight import status
from tests.sources.conformance import Case
from tests.sources.live_turn import ModelEndpoint


def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


async def slow(name: str, seconds: float) -> str:
    """Take a while."""
    await asyncio.sleep(seconds)
    return f"{name} is done"


def nap(seconds: float) -> str:
    """Block for a while."""
    status("napping")
    time.sleep(seconds)
    return "rested"


def fail(reason: str) -> str:
    """Fail."""
    raise ValueError(reason)


def big(size: int) -> str:
    """Return a lot."""
    return "x" * size


@tool(requires_confirmation=True)
def danger(path: str) -> str:
    """Remove a file."""
    return f"{path} is gone"


@dataclass
class Progress(CustomEvent):
    """An event that a tool yields."""

    content: str | None = None
    share: float = 0.0

    def __str__(self) -> str:  # Agno appends it to the tool's result; by default it contains the time
        return f"[{self.content}] "


async def talk() -> AsyncIterator[Any]:
    """Speak while at work."""
    yield Progress(content="halfway", share=0.5)
    yield "there"


TOOLS: list[Any] = [add, slow, nap, fail, big, danger, talk]


MODELS: list[OpenAILike] = []
"""All models that were made, whose connections the test closes."""


def model(endpoint: ModelEndpoint) -> OpenAILike:
    MODELS.append(OpenAILike(id="understudy", base_url=endpoint.base_url, api_key=endpoint.key, max_retries=0))
    return MODELS[-1]


async def close_models() -> None:
    while MODELS:
        client = MODELS.pop().async_client
        if client is not None:
            await client.close()


def plain(endpoint: ModelEndpoint, **options: Any) -> Agent:
    """One agent with all the tools."""
    given: dict[str, Any] = {"name": "actor", "model": model(endpoint), "tools": TOOLS, "telemetry": False, **options}
    return Agent(**given)


def team(endpoint: ModelEndpoint, **options: Any) -> Team:
    """A team whose only member is the helper, unless others are named."""
    members: list[Any] = options.pop("members", None) or [plain(endpoint, name="helper")]
    given: dict[str, Any] = {
        "name": "boss",
        "members": members,
        "model": model(endpoint),
        "telemetry": False,
        **options,
    }
    return Team(**given)


def team_in_team(endpoint: ModelEndpoint) -> Team:
    return team(endpoint, members=[team(endpoint, name="inner")])


def planning(endpoint: ModelEndpoint) -> Team:
    """A team that works by tasks."""
    return team(endpoint, mode=TeamMode.tasks)


def answering(*turns: str) -> str:
    return "\n".join([*turns, "- steps: [{text: All done.}]"])


def calling(name: str, arguments: str) -> str:
    return f"- steps: [{{tool_calls: [{{name: {name}, arguments: {arguments}}}]}}]"


def delegating(member: str, task: str) -> str:
    return f"{{name: delegate_task_to_member, arguments: {{member_id: {member}, task: '{task}'}}}}"


ONE_TOOL = answering(calling("add", "{a: 2, b: 3}"))
DANGER = answering(calling("danger", "{path: /tmp/x}"))
HELPER = """
- match: "help:"
  turns:
    - steps: [{tool_calls: [{name: %s, arguments: %s}]}]
    - steps: [{text: The sum is five.}]
- turns:
    - steps: [{tool_calls: [{name: delegate_task_to_member, arguments: {member_id: helper, task: "help: now"}}]}]
    - steps: [{text: All done.}]
"""
TWO_HELPERS = f"""
- match: "help: one"
  turns:
    - steps: [{{tool_calls: [{{name: slow, arguments: {{name: first, seconds: 2}}}}]}}]
    - steps: [{{text: First.}}]
- match: "help: two"
  turns:
    - steps: [{{tool_calls: [{{name: slow, arguments: {{name: second, seconds: 0.05}}}}]}}]
    - steps: [{{text: Second.}}]
- turns:
    - steps: [{{tool_calls: [{delegating("helper", "help: one")}, {delegating("helper", "help: two")}]}}]
    - steps: [{{text: All done.}}]
"""
PLAN = answering(
    calling("create_task", "{title: Look, description: Look around., assignee: helper}"),
    calling("create_task", "{title: Tell, description: Tell what you saw., assignee: helper}"),
    calling("mark_all_complete", "{summary: Told.}"),
)
FIFTY = answering(
    "- steps:\n    - tool_calls:\n"
    + "\n".join(f"        - {{name: add, arguments: {{a: {n}, b: 1}}, id: call_{n}}}" for n in range(50))
)
TWO = "- steps: [{tool_calls: [{name: %s, arguments: %s}, {name: %s, arguments: %s}]}]"

CASES: dict[str, Case] = {
    "text": Case(plain, "- steps: [{delay: 0.2}, {text: All done.}]"),  # slow enough for a commit between
    "reasoning": Case(plain, "- steps: [{reasoning: Let me think.}, {text: All done.}]"),
    "one_tool": Case(plain, ONE_TOOL),
    "argument_deltas": Case(plain, ONE_TOOL),
    "parallel_tools": Case(
        plain, answering(TWO % ("slow", "{name: first, seconds: 0.4}", "slow", "{name: second, seconds: 0.05}"))
    ),
    "tool_error": Case(plain, answering(calling("fail", "{reason: no such file}"))),
    "malformed_args": Case(plain, answering("""- steps: [{tool_calls: [{name: add, raw: '{"a": 2, "b": '}]}]""")),
    "unknown_tool": Case(plain, answering(calling("nothing_like_it", "{a: 1}"))),
    "sub_agent": Case(team, HELPER % ("add", "{a: 2, b: 3}")),
    "parallel_sub_agents": Case(team, TWO_HELPERS),
    "plan": Case(planning, PLAN),
    "steps": Case(plain, ONE_TOOL),
    "usage": Case(
        plain,
        "- steps: [{tool_calls: [{name: add, arguments: {a: 2, b: 3}}]}, {usage: {input: 100, output: 7}}]\n"
        "- steps: [{text: All done.}, {usage: {input: 100, output: 7}}]",
    ),
    "output_deltas": Case(plain, answering(calling("talk", "{}"))),
    "approval": Case(plain, DANGER),
    "approval_edited": Case(plain, DANGER),
    "approval_rejected": Case(plain, DANGER),
    "two_approvals": Case(plain, answering(TWO % ("danger", "{path: /tmp/x}", "danger", "{path: /tmp/y}"))),
    "approval_in_sub_agent": Case(team, HELPER % ("danger", "{path: /tmp/x}")),
    "model_error": Case(plain, "- steps: [{error: {status: 500, message: out of order}}]"),
    "cut_stream": Case(plain, "- steps: [{text: All is}, {cut: true}]"),
    "big_result": Case(plain, answering(calling("big", "{size: 50000}"))),
    "split_unicode": Case(plain, "- steps: [{text: Grüße 👩‍👩‍👧 世界 All done.}]"),
    "fifty_tools": Case(plain, FIFTY),
    "stopped_in_a_tool": Case(plain, answering(calling("slow", "{name: first, seconds: 30}"))),
    "stopped_in_a_sync_tool": Case(plain, answering(calling("nap", "{seconds: 1}"))),
}
