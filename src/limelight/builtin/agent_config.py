"""The configuration from which a built-in agent is created: its model, its tools and its settings."""

from collections.abc import Awaitable, Callable

import msgspec

from limelight.builtin.model_choice import ModelChoice
from limelight.builtin.search_tools import SearchTools
from limelight.sandbox.sandbox import Sandbox

IMPORTS = (
    "collections",
    "datetime",
    "functools",
    "itertools",
    "json",
    "math",
    "random",
    "re",
    "statistics",
    "string",
    "textwrap",
    "time",
)
"""The modules that the code of `codact` may import by default. They need no files, processes or network."""

EXECUTE = "execute"
"""The name of the tool that runs shell commands. An agent has this tool only if its table enables it."""


class AgentConfig(msgspec.Struct, frozen=True, kw_only=True):
    """The model, the tools and the settings from which one built-in agent is created."""

    model: ModelChoice
    search_tools: SearchTools
    sample_files: bool = True
    """Whether sample files are copied into an empty workspace; false for a folder of the user."""
    planning_interval: int | None = None
    approve: tuple[str, ...] = ()
    """The tools that need the approval of a person."""
    imports: tuple[str, ...] = IMPORTS
    execute: bool = False
    """Whether the agent may run shell commands."""
    sandbox: Sandbox | None = None
    """Where commands run; None if the agent runs none."""
    on_close: list[Callable[[], Awaitable[None]]] = []
    """Functions that are called when the agent is closed. Factories append those that close their clients."""
