"""What is served."""

from limelight import __version__
from limelight.server.endpoint import Call, Endpoint
from limelight.server.views import AgentsView, AgentView


async def list_agents(call: Call) -> AgentsView:
    """The agents of this server. The default one answers requests that name none."""
    agents = call.parts.agents
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
    Endpoint(method="GET", path="/agents", summary="List agents", call=list_agents, reply=AgentsView, tag="Agents"),
)
