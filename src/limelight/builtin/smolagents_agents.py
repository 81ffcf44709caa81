"""The built-in agents made with smolagents: `react`, which calls tools, and `codact`, which writes and runs Python.

The code of `codact` runs in the sandbox, in smolagents' interpreter, which allows listed imports only.
"""

from importlib import import_module
from typing import Any

from limelight.builtin.agent_config import AgentConfig

CODACT_PLANNING_INTERVAL = 3
"""Default number of steps between two plans of the agent `codact`."""
REACT_INSTRUCTIONS = """Think aloud: before each tool call, write in one or two sentences what you have found out and
what you do next, as the text of the same message. Do not repeat the final answer there."""
"""Instructions that ask the model for its thoughts, which smolagents' prompt for tool-calling agents does not."""


def create_react_agent(config: AgentConfig) -> Any:
    smolagents: Any = import_module("smolagents")
    return smolagents.ToolCallingAgent(
        tools=_search_tools(config),
        model=_model(config),
        instructions=REACT_INSTRUCTIONS,
        planning_interval=config.planning_interval,
        verbosity_level=smolagents.LogLevel.OFF,
    )


def create_codact_agent(config: AgentConfig) -> Any:
    smolagents: Any = import_module("smolagents")
    return smolagents.CodeAgent(
        tools=_search_tools(config),
        model=_model(config),
        planning_interval=config.planning_interval or CODACT_PLANNING_INTERVAL,
        additional_authorized_imports=list(config.imports),
        verbosity_level=smolagents.LogLevel.OFF,
    )


def _model(config: AgentConfig) -> Any:
    model_class: Any = import_module("smolagents").OpenAIModel
    return model_class(model_id=config.model.model, api_base=config.model.base_url, api_key=config.model.key)


def _search_tools(config: AgentConfig) -> list[Any]:
    tool_class: Any = import_module("smolagents").Tool

    class Search(tool_class):
        name = "search"
        description = "Finds pages about something: a list of title, url and snippet, the best first."
        inputs = {"query": {"type": "string", "description": "What to look for."}}  # noqa: RUF012
        output_type = "array"

        def forward(self, query: str) -> Any:
            return config.search_tools.search(query)

    class ReadUrl(tool_class):
        name = "readurl"
        description = "Reads the text of a page."
        inputs = {"url": {"type": "string", "description": "An address that search gave."}}  # noqa: RUF012
        output_type = "string"

        def forward(self, url: str) -> str:
            return config.search_tools.readurl(url)

    return [Search(), ReadUrl()]
