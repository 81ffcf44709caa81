"""The agents of the server."""

from limelight import __version__
from limelight.server.endpoint import ApiRequest, Endpoint
from limelight.server.schemas import AgentsView, AgentView


async def list_agents(request: ApiRequest) -> AgentsView:
    """The agents of this server. The default one answers requests that name no agent."""
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


ENDPOINTS = (
    Endpoint(
        method="GET", path="/agents", summary="List agents", handler=list_agents, response=AgentsView, tag="Agents"
    ),
)
