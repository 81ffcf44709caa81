"""The built-in agents made with Agno: `agno` (files and a calculator) and `agno-team` (a leader with two members)."""

import json
from collections.abc import Callable
from importlib import import_module
from typing import Any

from limelight.builtin.agent_config import AgentConfig
from limelight.builtin.basic_tools import calculate, wait
from limelight.builtin.file_tools import FileTools

PROMPT = """You answer questions with the files of the workspace. List them first and read those that fit.
Use calculate for every sum. Say in the answer which file it comes from."""


def create_agno_agent(config: AgentConfig) -> Any:
    agent_class: Any = import_module("agno.agent").Agent
    files = FileTools(sample_files=config.sample_files)

    def list_files() -> str:
        """List the files of the workspace."""
        return json.dumps(files.list_files(), ensure_ascii=False)

    tools = (list_files, files.read_file, files.write_file, files.delete_file, calculate, wait)
    return agent_class(
        name="agno",
        model=_model(config),
        instructions=PROMPT,
        tools=_with_approvals(config, *tools),
        telemetry=False,
    )


def create_agno_team(config: AgentConfig) -> Any:
    agent_class: Any = import_module("agno.agent").Agent
    team_class: Any = import_module("agno.team").Team
    members = [
        agent_class(
            name="Researcher",
            role="Looks things up in the library or on the web",
            model=_model(config),
            instructions="Search first, read the best page with readurl, then report in a few sentences.",
            tools=_with_approvals(config, *_search_tools(config)),
            telemetry=False,
        ),
        agent_class(
            name="Calculator",
            role="Does arithmetic",
            model=_model(config),
            instructions="Use calculate for every sum, and give the result in one sentence.",
            tools=_with_approvals(config, calculate),
            telemetry=False,
        ),
    ]
    return team_class(
        name="agno-team",
        model=_model(config),
        members=members,
        instructions="Give each part of a question to the member who can answer it, then put their reports together.",
        telemetry=False,
    )


def _model(config: AgentConfig) -> Any:
    model_class: Any = import_module("agno.models.openai.like").OpenAILike
    client_class: Any = import_module("openai").AsyncOpenAI
    choice = config.model
    client = client_class(base_url=choice.base_url, api_key=choice.key)
    config.on_close.append(client.close)
    return model_class(id=choice.model, base_url=choice.base_url, api_key=choice.key, async_client=client)


def _with_approvals(config: AgentConfig, *tools: Callable[..., Any]) -> list[Any]:
    """Return the tools with Agno's confirmation required for those that the setting `approve` names."""
    return [_with_confirmation(tool) if tool.__name__ in config.approve else tool for tool in tools]


def _with_confirmation(tool: Callable[..., Any]) -> Any:
    function: Any = import_module("agno.tools.function").Function.from_callable(tool)
    function.requires_confirmation = True
    function.description = f"{function.description} A person is asked for approval first."
    return function


def _search_tools(config: AgentConfig) -> list[Callable[..., str]]:
    """Return the tools `search` and `readurl` for Agno.

    Results are JSON, because Agno would write a list as a Python literal.
    """

    def search(query: str) -> str:
        """Find pages about a topic. Returns the title, URL and a snippet of each page, best first.

        Args:
            query: The words to search for.
        """
        return json.dumps(config.search_tools.search(query), ensure_ascii=False)

    def readurl(url: str) -> str:
        """Read the text of a page.

        Args:
            url: A URL returned by search.
        """
        return config.search_tools.readurl(url)

    return [search, readurl]
