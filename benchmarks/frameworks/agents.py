"""The measured agent of each framework, and functions that run it and read its tokens without Limelight."""

# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownParameterType=false
# The frameworks' own types are partly unknown.

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from typing import Any, NamedTuple

from agno.agent import Agent
from agno.models.openai import OpenAILike
from deepagents import create_deep_agent
from langchain.agents import create_agent
from langchain_openai import ChatOpenAI
from pydantic import SecretStr
from rich.console import Console
from smolagents import ChatMessage, MessageRole, OpenAIModel, ToolCallingAgent
from smolagents.monitoring import AgentLogger, LogLevel

QUESTION = "go"
KEY = "none"


ReadTokens = Callable[[], Awaitable[list[str]]]
"""A function that runs an agent without Limelight and returns its tokens."""


class FrameworkAgent(NamedTuple):
    """The agent of a framework, and functions that run it without Limelight, one for each of its ways to stream."""

    agent: Any
    alone: dict[str, ReadTokens]


def framework_agents(model_url: str) -> dict[str, FrameworkAgent]:
    """Return the agent of each framework. `model_url` is the address of the canned model."""
    url = f"{model_url}/v1"
    graphs = {
        "langgraph": create_agent(_chat_model(url)),
        "deepagents": create_deep_agent(model=_chat_model(url)),
    }
    return {
        **{name: FrameworkAgent(graph, {"": _graph_reader(graph)}) for name, graph in graphs.items()},
        "agno": _agno(url),
        "smolagents": _smolagents(f"{model_url}/calling/v1"),
    }


def _chat_model(url: str) -> ChatOpenAI:
    return ChatOpenAI(model="canned", base_url=url, api_key=SecretStr(KEY), stream_usage=True, max_retries=0)


def _graph_reader(graph: Any) -> ReadTokens:
    async def read() -> list[str]:
        state = {"messages": [{"role": "user", "content": QUESTION}]}
        return [message.content async for message, _ in graph.astream(state, stream_mode="messages") if message.content]

    return read


def _agno(url: str) -> FrameworkAgent:
    agent = Agent(model=OpenAILike(id="canned", base_url=url, api_key=KEY, max_retries=0), telemetry=False)

    async def read() -> list[str]:
        stream: Any = agent.arun(QUESTION, stream=True, stream_events=True)
        return [event.content async for event in stream if event.event == "RunContent" and event.content]

    return FrameworkAgent(agent, {"": read})


def _smolagents(url: str) -> FrameworkAgent:
    """Create the smolagents agent, which prints nothing, with its two ways to stream: by agent and by model."""
    model = OpenAIModel(model_id="canned", api_base=url, api_key=KEY, client_kwargs={"max_retries": 0})
    logger = AgentLogger(level=LogLevel.OFF, console=Console(quiet=True))
    agent = ToolCallingAgent(tools=[], model=model, stream_outputs=True, logger=logger)

    def by_agent() -> Iterator[str | None]:
        steps: Any = agent.run(QUESTION, stream=True)
        for item in steps:
            yield item.content if type(item).__name__ == "ChatMessageStreamDelta" else None

    def by_model() -> Iterator[str | None]:
        messages: list[Any] = [ChatMessage(role=MessageRole.USER, content=QUESTION)]
        for delta in model.generate_stream(messages, tools_to_call_from=list(agent.tools.values())):
            yield delta.content

    return FrameworkAgent(agent, {"": _in_thread(by_agent), "model": _in_thread(by_model)})


def _in_thread(stream: Callable[[], Iterator[str | None]]) -> ReadTokens:
    """Convert a blocking token reader of smolagents to an async one that runs in a thread, as every server has to."""

    async def read() -> list[str]:
        return await asyncio.to_thread(lambda: [piece for piece in stream() if piece])

    return read
