"""The route that lists the agents of the server."""

from limelight import __version__
from limelight.server.endpoint import ApiRequest, Router
from limelight.server.schemas import AgentsView, AgentView

router = Router("Agents")


@router.route("GET", "/agents", "List agents")
async def list_agents(request: ApiRequest) -> AgentsView:
    """List the agents of this server. The default agent answers requests that name no agent."""
    agents = request.runtime.agents
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
            )
            for agent in agents
        ],
    )
