"""The agents that are measured, and how somebody without Limelight reads every token of theirs."""

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


class Cast(NamedTuple):
    """An agent, and the ways to use it alone: each gives all the text that came, in as many pieces as there were."""

    agent: Any
    alone: dict[str, Callable[[], Awaitable[list[str]]]]


def casts(model_url: str) -> dict[str, Cast]:
    """All of them. `model_url` is where the canned model is."""
    url = f"{model_url}/v1"
    graphs = {
        "langgraph": create_agent(_chat_model(url)),
        "deepagents": create_deep_agent(model=_chat_model(url)),
    }
    return {
        **{name: Cast(graph, {"": _graph(graph)}) for name, graph in graphs.items()},
        "agno": _agno(url),
        "smolagents": _smolagents(f"{model_url}/calling/v1"),
    }


def _chat_model(url: str) -> ChatOpenAI:
    return ChatOpenAI(model="canned", base_url=url, api_key=SecretStr(KEY), stream_usage=True, max_retries=0)


def _graph(graph: Any) -> Callable[[], Awaitable[list[str]]]:
    async def read() -> list[str]:
        asked = {"messages": [{"role": "user", "content": QUESTION}]}
        return [message.content async for message, _ in graph.astream(asked, stream_mode="messages") if message.content]

    return read


def _agno(url: str) -> Cast:
    agent = Agent(model=OpenAILike(id="canned", base_url=url, api_key=KEY, max_retries=0), telemetry=False)

    async def read() -> list[str]:
        stream: Any = agent.arun(QUESTION, stream=True, stream_events=True)
        return [event.content async for event in stream if event.event == "RunContent" and event.content]

    return Cast(agent, {"": read})


def _smolagents(url: str) -> Cast:
    """Alone it prints nothing either, and streams in the two ways there are: the agent's own, and the model's."""
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

    return Cast(agent, {"": _in_thread(by_agent), "model": _in_thread(by_model)})


def _in_thread(stream: Callable[[], Iterator[str | None]]) -> Callable[[], Awaitable[list[str]]]:
    """smolagents blocks, so a server of any kind runs it in a thread."""

    async def read() -> list[str]:
        return await asyncio.to_thread(lambda: [piece for piece in stream() if piece])

    return read
