"""Three agents of three frameworks at once, one of which blocks its thread."""

# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUntypedFunctionDecorator=false, reportUnknownArgumentType=false

import threading
import time
from pathlib import Path

import pytest
from smolagents import tool

from limelight.understudy.scripts import parse_scripts
from limelight.understudy.server import Understudy
from tests.server.v2.socket_client import socket, types, whole
from tests.sources.agno import agno_scenarios
from tests.sources.langgraph import langgraph_scenarios
from tests.sources.live_turn import ModelEndpoint
from tests.sources.smolagents.smolagents_scenarios import coding
from tests.support.server import offer, serving

SCRIPT = """
- match: grind
  turns:
    - steps:
        - text: "Thought: I grind.\\n<code>\\nprint('begun')\\ngrind()\\nfinal_answer('ground')\\n</code>"
- match: talk
  turns:
    - steps: [{delay: 0.002}, {text: "%s"}]
""" % ("word " * 100)
may_end = threading.Event()


@tool
def grind() -> str:
    """Keep the processor busy."""
    deadline = time.monotonic() + 60
    while not may_end.is_set() and time.monotonic() < deadline:
        sum(range(1000))
    return "fine"


@pytest.mark.requirement("agents-do-not-block-each-other")
async def test_busy_agent_blocks_neither_pings_nor_other_agents(tmp_path: Path) -> None:
    may_end.clear()
    async with Understudy(parse_scripts(SCRIPT)) as understudy:
        stage = ModelEndpoint(understudy.base_url, understudy.key)
        cast = [
            offer(coding(grind)(stage), "grinder"),
            offer(langgraph_scenarios.plain(stage), "graph"),
            offer(agno_scenarios.plain(stage), "agno"),
        ]
        async with (
            serving(agents=cast, data=tmp_path) as served,
            socket(served, "g", agent_type="grinder") as grinding,
            socket(served, "t", agent_type="graph") as talking,
            socket(served, "u", agent_type="agno") as telling,
        ):
            await grinding.send("query", query="grind")
            await grinding.until(lambda f: f.get("metadata", {}).get("message_type") == "execution_logs")
            for other in (talking, telling, grinding):
                await other.send("ping")
                await other.until_type("pong")
            for other in (talking, telling):
                frames = await other.ask("talk")
                assert whole(frames)[-1]["content"].count("word") == 100
            for _ in range(50):
                await grinding.send("ping")
                assert "pong" in types(await grinding.until_type("pong"))
            await grinding.send("get_state")
            assert (await grinding.until_type("state"))[-1]["state"]["state"] == "processing"
            may_end.set()
            assert whole(await grinding.until_state("completed"))[-1]["content"] == "ground"
    await agno_scenarios.close_models()
