"""The route that lists the agents of the server."""

import asyncio

from limelight import __version__
from limelight.runs.agent_registry import Agent
from limelight.server.endpoint import ApiRequest, Router
from limelight.server.schemas import AgentsView, AgentView

router = Router("Agents")


@router.route("GET", "/agents", "List agents")
async def list_agents(request: ApiRequest) -> AgentsView:
    """List the agents of this server. The default agent answers requests that name no agent."""
    agents = request.runtime.agents
    levels = {agent.name: await asyncio.to_thread(sandbox_level, agent) for agent in agents}
    return AgentsView(
        __version__,
        [
            AgentView(
                name=agent.name,
                title=agent.title,
                description=agent.description,
                framework=agent.source.framework,
                model=agent.model,
                default=agent is agents.default,
                sandbox=levels[agent.name],
            )
            for agent in agents
        ],
    )


def sandbox_level(agent: Agent) -> str:
    """Return how the code of an agent's model is confined; "" if the agent runs no code. Blocks until this is known."""
    return agent.sandbox.level if agent.sandbox is not None else ""
