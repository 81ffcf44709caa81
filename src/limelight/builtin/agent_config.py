"""What the maker of an agent is given: a model, tools, and what the configuration says."""

from collections.abc import Awaitable, Callable

import msgspec

from limelight.builtin.model_choice import ModelChoice
from limelight.builtin.search_tools import Lookup

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
"""What codact's code may import if nothing else is said: nothing that reaches files, processes or the network."""


EXECUTE = "execute"
"""The tool that runs commands, which an agent has only if its table says so."""


class Kit(msgspec.Struct, frozen=True, kw_only=True):
    """The makings of one agent."""

    model: ModelChoice
    lookup: Lookup
    samples: bool = True
    """Whether an empty workspace gets the sample files: not if the folder is somebody's own."""
    planning_interval: int | None = None
    approve: tuple[str, ...] = ()
    """The tools before which a person is asked."""
    imports: tuple[str, ...] = IMPORTS
    execute: bool = False
    """Whether the agent may run commands."""
    closing: list[Callable[[], Awaitable[None]]] = []
    """What the agent holds open: to be called when it is not needed any more."""
