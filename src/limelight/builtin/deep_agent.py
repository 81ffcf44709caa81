"""The built-in agent `deep`: a deepagents agent with todos, files and a researcher (a sub-agent).

The agent has `execute` only if its table enables it. Commands run in the sandbox.
"""

from importlib import import_module
from typing import Any

import openai
from langchain_openai import ChatOpenAI

from limelight.builtin.agent_config import EXECUTE, AgentConfig
from limelight.builtin.basic_tools import wait
from limelight.builtin.deepagents_backends import SessionFilesBackend, SessionShellBackend
from limelight.builtin.web_fetch import FetchError

PROMPT = """You are a careful assistant with a workspace of files and a researcher.
Write down a short plan with write_todos if a question needs more than one step, and keep it up to date.
Look at the files that are there before you answer. Give questions about the world to the researcher.
{approval}Say in the answer where it comes from."""
RESEARCH_PROMPT = """You look things up. Search first, read the best page with readurl, then report in a few sentences,
with the address of each page that you used."""


def create_deep_agent(config: AgentConfig) -> Any:
    create: Any = import_module("deepagents").create_deep_agent
    todo_middleware: Any = import_module("langchain.agents.middleware").TodoListMiddleware
    tool_class: Any = import_module("langchain_core.tools").StructuredTool
    researcher = {
        "name": "researcher",
        "description": "Looks things up in the library or on the web, and reports what it says",
        "system_prompt": RESEARCH_PROMPT,
        "tools": _search_tools(config),
    }
    approve = tuple(name for name in config.approve if config.execute or name != EXECUTE)
    return create(
        name="deep",
        model=_chat_model(config),
        system_prompt=PROMPT.format(approval=_approval_rule(approve)),
        tools=[tool_class.from_function(coroutine=wait, parse_docstring=True)],
        middleware=[todo_middleware()],
        subagents=[researcher],
        interrupt_on=dict.fromkeys(approve, True),
        backend=_backend(config),
    )


def _backend(config: AgentConfig) -> Any:
    if config.execute and config.sandbox is not None:
        return SessionShellBackend(config.sandbox, sample_files=config.sample_files)
    return SessionFilesBackend(sample_files=config.sample_files)


def _approval_rule(names: tuple[str, ...]) -> str:
    if not names:
        return ""
    return f"A person is asked for approval before {' or '.join(names)} does anything; take a no for an answer.\n"


def _search_tools(config: AgentConfig) -> list[Any]:
    """Return the tools `search` and `readurl` for LangChain.

    A FetchError is returned as text, because an exception would end the run.
    """
    langchain_tools: Any = import_module("langchain_core.tools")

    def search(query: str) -> list[dict[str, Any]]:
        """Find pages about a topic. Returns the title, URL and a snippet of each page, best first."""
        try:
            return config.search_tools.search(query)
        except FetchError as error:
            raise langchain_tools.ToolException(str(error)) from error

    def readurl(url: str) -> str:
        """Read the text of a page at a URL returned by search."""
        try:
            return config.search_tools.readurl(url)
        except FetchError as error:
            raise langchain_tools.ToolException(str(error)) from error

    return [
        langchain_tools.StructuredTool.from_function(function, handle_tool_error=True, parse_docstring=False)
        for function in (search, readurl)
    ]


class ReasoningChatOpenAI(ChatOpenAI):
    """LangChain's OpenAI chat model, extended to keep the reasoning (`reasoning_content`) that a server streams.

    `ChatOpenAI` drops it, because OpenAI does not send it; many other servers do.
    """

    def _convert_chunk_to_generation_chunk(
        self, chunk: dict[str, Any], default_chunk_class: type, base_generation_info: dict[str, Any] | None
    ) -> Any:
        base: Any = super()
        generation = base._convert_chunk_to_generation_chunk(chunk, default_chunk_class, base_generation_info)
        reasoning = _reasoning_in(chunk)
        if generation is not None and reasoning:
            generation.message.additional_kwargs["reasoning_content"] = reasoning
        return generation


def _reasoning_in(chunk: dict[str, Any]) -> str:
    choices: list[Any] = chunk.get("choices") or [{}]
    delta: Any = choices[0].get("delta")
    return str(delta.get("reasoning_content") or "") if delta else ""


def _chat_model(config: AgentConfig) -> Any:
    model_class: Any = ReasoningChatOpenAI
    http: Any = openai.DefaultAsyncHttpxClient()  # LangChain's default client is shared and never closed
    config.on_close.append(http.aclose)
    choice = config.model
    return model_class(
        model=choice.model, base_url=choice.base_url, api_key=choice.key, stream_usage=True, http_async_client=http
    )
