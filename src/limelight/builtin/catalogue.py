"""The catalogue of built-in agents, in the order in which they are served.

The first one whose framework is installed is the default. Importing this module imports no framework.
"""

from collections.abc import Awaitable, Callable
from importlib import import_module
from importlib.util import find_spec

import msgspec

from limelight import plugins
from limelight.builtin.agent_config import EXECUTE, AgentConfig
from limelight.builtin.model_choice import resolve_address
from limelight.errors import SetupError
from limelight.sources.base import AgentResources, Options, Source
from limelight.sources.lazy_agents import LazyAgent, lazy_source, needs_extra


class BuiltIn(msgspec.Struct, frozen=True, kw_only=True):
    """A built-in agent: its name, description, factory, tools and supported settings."""

    name: str
    title: str
    description: str
    source: str
    """Name of the entry point of the source that runs the agent."""
    factory: str
    """The `module:function` that takes an AgentConfig and returns the framework's agent object."""
    extra: str = ""
    packages: tuple[str, ...] = ()
    """The packages of the agent's extra, which must be installed."""
    settings: frozenset[str] = frozenset()
    """Which of these settings the agent supports: model, base_url, workspace, imports, execute, approve."""
    tools: tuple[str, ...] = ()
    """Names of the tools of the agent and of its sub-agents."""
    approvable_tools: tuple[str, ...] = ()
    """Names of the tools that can be made to require an approval."""
    approve: tuple[str, ...] = ()
    """Names of the tools that require an approval by default."""
    runs_code: bool = False
    """Whether the agent runs Python code written by its model."""

    @property
    def is_installed(self) -> bool:
        return all(find_spec(package) is not None for package in self.packages)

    @property
    def source_type(self) -> type[Source]:
        return plugins.get("sources", self.source)


MODEL = frozenset({"model", "base_url"})
PRELOADED_MODULES = {
    "langgraph": (
        "checkpointer",
        "store",
        "langgraph.checkpoint.sqlite.aio",
        "graph_input",
        "schemas",
        "history",
        "final_answer",
    ),
    "agno": ("agno.db.sqlite", "agno.media", "history"),
    "smolagents": ("instrument",),
}
"""Modules that are imported in the thread that creates the agent, because its source would otherwise import them on the
event loop."""
DEEP_TOOLS = (
    "write_todos",
    "ls",
    "read_file",
    "write_file",
    "edit_file",
    "delete",
    "glob",
    "grep",
    "task",
    "search",
    "readurl",
    "wait",
)
AGNO_TOOLS = ("list_files", "read_file", "write_file", "delete_file", "calculate", "wait")
BUILT_INS = (
    BuiltIn(
        name="deep",
        title="Deep agent",
        description="Plans, works with files and sends a researcher to the library (deepagents)",
        source="langgraph",
        factory="limelight.builtin.deep_agent:create_deep_agent",
        extra="deepagents",
        packages=("deepagents", "langchain_openai", "langgraph"),
        settings=MODEL | {"workspace", "approve", EXECUTE},
        tools=(*DEEP_TOOLS, EXECUTE),
        approvable_tools=(*DEEP_TOOLS, EXECUTE),
        approve=("delete",),
    ),
    BuiltIn(
        name="agno",
        title="Agno agent",
        description="Reads and writes files and calculates (Agno)",
        source="agno",
        factory="limelight.builtin.agno_agents:create_agno_agent",
        extra="agno",
        packages=("agno", "openai"),
        settings=MODEL | {"workspace", "approve"},
        tools=AGNO_TOOLS,
        approvable_tools=AGNO_TOOLS,
        approve=("delete_file",),
    ),
    BuiltIn(
        name="agno-team",
        title="Agno team",
        description="A leader with two members, one to look things up and one to calculate (Agno)",
        source="agno",
        factory="limelight.builtin.agno_agents:create_agno_team",
        extra="agno",
        packages=("agno", "openai"),
        settings=MODEL | {"approve"},
        tools=("delegate_task_to_member", "search", "readurl", "calculate"),
        approvable_tools=("search", "readurl", "calculate"),
    ),
    BuiltIn(
        name="react",
        title="ReAct agent",
        description="Thinks, searches and reads, step by step (smolagents)",
        source="smolagents",
        factory="limelight.builtin.smolagents_agents:create_react_agent",
        extra="smolagents",
        packages=("smolagents", "openai"),
        settings=MODEL,
        tools=("search", "readurl", "final_answer"),
        approvable_tools=("search", "readurl"),
    ),
    BuiltIn(
        name="codact",
        title="CodeAct agent",
        description="Plans, and acts by writing and running Python (smolagents)",
        source="smolagents",
        factory="limelight.builtin.smolagents_agents:create_codact_agent",
        extra="smolagents",
        packages=("smolagents", "openai"),
        settings=MODEL | {"imports"},
        tools=("search", "readurl", "python_interpreter", "final_answer"),
        approvable_tools=("search", "readurl", "python_interpreter"),
        runs_code=True,
    ),
    BuiltIn(
        name="demo",
        title="Demo",
        description="Looks things up in sample files: real tools, a sub-agent, a report; no model, no framework",
        source="function",
        factory="limelight.builtin.demo.agent:create_demo_agent",
        settings=frozenset({"workspace"}),
        tools=("list_files", "task", "search", "read_file", "write_file", "wait"),
    ),
)


def built_in(name: str) -> BuiltIn | None:
    """Return the built-in agent with this name; None if there is none."""
    return next((agent for agent in BUILT_INS if agent.name == name), None)


def make_source(agent: BuiltIn, name: str, config: AgentConfig, options: Options) -> Source:
    """Return the source of a built-in agent. The source creates the agent when it is opened.

    Raises SetupError if the extra of the agent is not installed.
    """
    if not agent.is_installed:
        raise SetupError(needs_extra(name, agent.extra))
    on_close: list[Callable[[], Awaitable[None]]] = []

    async def prepare(resources: AgentResources) -> Callable[[], object]:
        model = await resolve_address(config.model, resources) if "model" in agent.settings else config.model
        resolved = msgspec.structs.replace(config, model=model, on_close=on_close)
        module, _, function = agent.factory.partition(":")

        def create() -> object:
            created = getattr(import_module(module), function)(resolved)
            for preloaded in PRELOADED_MODULES.get(agent.source, ()):
                import_module(preloaded if "." in preloaded else f"limelight.sources.{agent.source}.{preloaded}")
            return created

        return create

    lazy_agent = LazyAgent(
        name=name, description=agent.description, extra=agent.extra, prepare=prepare, cleanups=on_close
    )
    return lazy_source(agent.source_type, lazy_agent, options)
