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
"""Modules that the code of the agent `codact` may import by default; none needs files, processes or the network."""

EXECUTE = "execute"
"""Name of the tool that runs shell commands. An agent has it only if its table in the settings enables it."""


class AgentConfig(msgspec.Struct, frozen=True, kw_only=True):
    """What one built-in agent is created from: its model, its tools and its settings."""

    model: ModelChoice
    search_tools: SearchTools
    sample_files: bool = True
    """Whether sample files are copied into an empty workspace; False if the user has chosen the folder."""
    planning_interval: int | None = None
    approve: tuple[str, ...] = ()
    """Names of the tools that need a person's approval."""
    imports: tuple[str, ...] = IMPORTS
    execute: bool = False
    """Whether the agent may run shell commands."""
    sandbox: Sandbox | None = None
    """The sandbox in which commands and code run; None if the agent runs none."""
    on_close: list[Callable[[], Awaitable[None]]] = []
    """Functions that are called when the agent is closed. The agent's factory appends those that close its clients."""
