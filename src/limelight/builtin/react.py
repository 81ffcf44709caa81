"""`react`: an agent that thinks, calls tools and looks at what they return, step by step."""

from importlib import import_module
from typing import Any

from limelight.builtin.agent_config import Kit
from limelight.builtin.smolagents_common import lookup_tools, smol_model


def react(kit: Kit) -> Any:
    smol: Any = import_module("smolagents")
    return smol.ToolCallingAgent(
        tools=lookup_tools(kit),
        model=smol_model(kit),
        planning_interval=kit.planning_interval,
        verbosity_level=smol.LogLevel.OFF,
    )
