"""`codact`: an agent that acts by writing Python, with a plan at the start and a new one every few steps.

smolagents runs the code in this process, in an interpreter that only knows what it was allowed to import. That keeps
mistakes small; it is no sandbox against code that wants out.
"""

from importlib import import_module
from typing import Any

from limelight.builtin.agent_config import Kit
from limelight.builtin.smolagents_common import lookup_tools, smol_model

PLAN_EVERY = 3


def codact(kit: Kit) -> Any:
    smol: Any = import_module("smolagents")
    return smol.CodeAgent(
        tools=lookup_tools(kit),
        model=smol_model(kit),
        planning_interval=kit.planning_interval or PLAN_EVERY,
        additional_authorized_imports=list(kit.imports),
        verbosity_level=smol.LogLevel.OFF,
    )
