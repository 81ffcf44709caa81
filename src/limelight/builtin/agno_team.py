"""`agno-team`: a leader who gives work to two members."""

from importlib import import_module
from typing import Any

from limelight.builtin.agent_config import Kit
from limelight.builtin.agno_common import agno_model, asking, lookup_tools
from limelight.builtin.calculator import calculate


def team(kit: Kit) -> Any:
    agent: Any = import_module("agno.agent").Agent
    make: Any = import_module("agno.team").Team
    members = [
        agent(
            name="Researcher",
            role="Looks things up in the library or on the web",
            model=agno_model(kit),
            instructions="Search first, read the best page with readurl, then report in a few sentences.",
            tools=asking(kit, *lookup_tools(kit)),
            telemetry=False,
        ),
        agent(
            name="Calculator",
            role="Does arithmetic",
            model=agno_model(kit),
            instructions="Use calculate for every sum, and give the result in one sentence.",
            tools=asking(kit, calculate),
            telemetry=False,
        ),
    ]
    return make(
        name="agno-team",
        model=agno_model(kit),
        members=members,
        instructions="Give each part of a question to the member who can answer it, then put their reports together.",
        telemetry=False,
    )
