"""smolagents: tools of an MCP server, which a context manager around the agent starts and ends, over stdio."""

# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false, reportUnknownVariableType=false

from pathlib import Path

from limelight.agents.load import load_agent
from limelight.events import RunFinished
from limelight.understudy.scripts import parse_scripts
from limelight.understudy.server import Understudy
from tests.sources.live_turn import AgentServer, ModelEndpoint
from tests.support.server import serving

SERVER = '''
import sys
from pathlib import Path
from mcp.server.fastmcp import FastMCP

server = FastMCP("weights")

@server.tool()
def weigh(animal: str) -> str:
    """Weigh an animal."""
    return f"{animal}: 0.1 g"

try:
    server.run("stdio")
finally:
    Path(sys.argv[1]).write_text("ended")
'''

AGENT = '''
import sys
from contextlib import contextmanager
from mcp import StdioServerParameters
from smolagents import OpenAIModel, ToolCallingAgent, ToolCollection

@contextmanager
def agent():
    """Weighs animals."""
    server = StdioServerParameters(command=sys.executable, args=[{server!r}, {ended!r}])
    with ToolCollection.from_mcp(server, trust_remote_code=True, structured_output=False) as collection:
        model = OpenAIModel(model_id="understudy", api_base={url!r}, api_key={key!r})
        yield ToolCallingAgent(tools=[*collection.tools], model=model)
'''

SCRIPT = """
- steps: [{tool_calls: [{name: weigh, arguments: {animal: bee}}]}]
- steps: [{tool_calls: [{name: final_answer, arguments: {answer: A bee weighs 0.1 g.}}]}]
"""


async def test_tools_of_an_mcp_server_run_until_the_server_of_the_agent_stops(tmp_path: Path) -> None:
    server, ended = tmp_path / "weights.py", tmp_path / "ended.txt"
    server.write_text(SERVER)
    async with Understudy(parse_scripts(SCRIPT)) as understudy:
        endpoint = ModelEndpoint(understudy.base_url, understudy.key)
        values = {"url": endpoint.base_url, "key": endpoint.key, "server": str(server), "ended": str(ended)}
        (tmp_path / "agent.py").write_text(AGENT.format(**values))
        agent = load_agent(f"{tmp_path}/agent.py:agent")
        async with serving(agents=[agent], data=tmp_path / "data") as served:
            run = await AgentServer(served, endpoint).run()
            assert isinstance(run.terminal, RunFinished)
            assert run.call("weigh").args == {"animal": "bee"}
            assert "bee: 0.1 g" in str(run.call("weigh").result)
            assert run.text() == run.answer == "A bee weighs 0.1 g."
            assert not ended.exists()
    assert ended.exists()
