"""The configuration from which a built-in agent is created: its model, its tools and its settings."""

from collections.abc import Awaitable, Callable

import msgspec

from limelight.builtin.model_choice import ModelChoice
from limelight.builtin.search_tools import SearchTools

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
"""The modules that codact's code may import by default; none of them reaches files, processes or the network."""

EXECUTE = "execute"
"""The tool that runs shell commands. An agent has it only if its table enables it."""


class AgentConfig(msgspec.Struct, frozen=True, kw_only=True):
    """The configuration of one built-in agent."""

    model: ModelChoice
    search_tools: SearchTools
    sample_files: bool = True
    """Whether an empty workspace gets the sample files; false for a folder of the user."""
    planning_interval: int | None = None
    approve: tuple[str, ...] = ()
    """The tools that need the approval of a person."""
    imports: tuple[str, ...] = IMPORTS
    execute: bool = False
    """Whether the agent may run shell commands."""
    on_close: list[Callable[[], Awaitable[None]]] = []
    """Called when the agent is closed; factories append the clients that they open."""
