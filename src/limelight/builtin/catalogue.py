"""The built-in agents, in the order in which they are served. The first whose framework is installed is the default."""

from collections.abc import Awaitable, Callable
from importlib import import_module
from importlib.util import find_spec

import msgspec

from limelight import plugins
from limelight.builtin.agent_config import EXECUTE, Kit
from limelight.builtin.model_choice import address_of
from limelight.errors import SetupError
from limelight.sources.base import AgentResources, Options, Source
from limelight.sources.lazy import LazyAgent, lazy_source, needs_extra


class BuiltIn(msgspec.Struct, frozen=True, kw_only=True):
    """One agent of the catalogue. `make` names a function that takes a Kit and gives the framework's object."""

    name: str
    title: str
    description: str
    source: str
    """The entry point of the source that runs it."""
    make: str
    extra: str = ""
    needs: tuple[str, ...] = ()
    """The packages of the extra that tell whether it is installed."""
    honours: frozenset[str] = frozenset()
    """Those of the settings model, base_url, workspace, imports, execute and approve that make a difference."""
    tools: tuple[str, ...] = ()
    """The names of its tools, and of those of its helpers."""
    can_ask: tuple[str, ...] = ()
    """Those before which it can be made to ask a person."""
    asks: tuple[str, ...] = ()
    """Those before which it does if nothing else is said."""

    @property
    def is_installed(self) -> bool:
        return all(find_spec(package) is not None for package in self.needs)

    @property
    def kind(self) -> type[Source]:
        return plugins.one("sources", self.source)


MODEL = frozenset({"model", "base_url"})
AHEAD = {
    "langgraph": ("checkpointer", "langgraph.checkpoint.sqlite.aio", "graph_input", "history", "final_answer"),
    "agno": ("agno.db.sqlite", "agno.media", "history"),
    "smolagents": ("instrument",),
}
"""What the sources import when they open or run first: with the agent, in its thread, it does not hold up the loop."""
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
        make="limelight.builtin.deep:deep",
        extra="deepagents",
        needs=("deepagents", "langchain_openai", "langgraph"),
        honours=MODEL | {"workspace", "approve", EXECUTE},
        tools=(*DEEP_TOOLS, EXECUTE),
        can_ask=(*DEEP_TOOLS, EXECUTE),
        asks=("delete",),
    ),
    BuiltIn(
        name="agno",
        title="Agno agent",
        description="Reads and writes files and calculates (Agno)",
        source="agno",
        make="limelight.builtin.agno_agent:agent",
        extra="agno",
        needs=("agno", "openai"),
        honours=MODEL | {"workspace", "approve"},
        tools=AGNO_TOOLS,
        can_ask=AGNO_TOOLS,
        asks=("delete_file",),
    ),
    BuiltIn(
        name="agno-team",
        title="Agno team",
        description="A leader with two members, one to look things up and one to calculate (Agno)",
        source="agno",
        make="limelight.builtin.agno_team:team",
        extra="agno",
        needs=("agno", "openai"),
        honours=MODEL | {"approve"},
        tools=("delegate_task_to_member", "search", "readurl", "calculate"),
        can_ask=("search", "readurl", "calculate"),
    ),
    BuiltIn(
        name="react",
        title="ReAct agent",
        description="Thinks, searches and reads, step by step (smolagents)",
        source="smolagents",
        make="limelight.builtin.react:react",
        extra="smolagents",
        needs=("smolagents", "openai"),
        honours=MODEL,
        tools=("search", "readurl", "final_answer"),
        can_ask=("search", "readurl"),
    ),
    BuiltIn(
        name="codact",
        title="CodeAct agent",
        description="Plans, and acts by writing and running Python (smolagents)",
        source="smolagents",
        make="limelight.builtin.codact:codact",
        extra="smolagents",
        needs=("smolagents", "openai"),
        honours=MODEL | {"imports"},
        tools=("search", "readurl", "python_interpreter", "final_answer"),
        can_ask=("search", "readurl", "python_interpreter"),
    ),
    BuiltIn(
        name="demo",
        title="Demo",
        description="Looks things up in sample files: real tools, a sub-agent, a report; no model, no framework",
        source="function",
        make="limelight.builtin.demo.source:demo",
        honours=frozenset({"workspace"}),
        tools=("list_files", "task", "search", "read_file", "write_file", "wait"),
    ),
)


def built_in(name: str) -> BuiltIn | None:
    return next((one for one in BUILT_INS if one.name == name), None)


def make_source(one: BuiltIn, name: str, kit: Kit, options: Options) -> Source:
    """The source of a built-in agent, which is made when it is opened. Raises SetupError if its extra is missing."""
    if not one.is_installed:
        raise SetupError(needs_extra(name, one.extra))
    closing: list[Callable[[], Awaitable[None]]] = []

    async def prepare(resources: AgentResources) -> Callable[[], object]:
        model = await address_of(kit.model, resources) if "model" in one.honours else kit.model
        ready = msgspec.structs.replace(kit, model=model, closing=closing)
        module, _, function = one.make.partition(":")

        def make() -> object:
            agent = getattr(import_module(module), function)(ready)
            for name in AHEAD.get(one.source, ()):
                import_module(name if "." in name else f"limelight.sources.{one.source}.{name}")
            return agent

        return make

    agent = LazyAgent(name=name, description=one.description, extra=one.extra, prepare=prepare, cleanups=closing)
    return lazy_source(one.kind, agent, options)
