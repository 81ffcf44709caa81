"""The routes, by family. `ENDPOINTS` is all of them, in the order of the documents."""

from limelight.server.endpoint import Endpoint
from limelight.server.routes import agents, chat, probes, runs, sessions

ENDPOINTS: tuple[Endpoint, ...] = (
    *chat.ENDPOINTS,
    *runs.ENDPOINTS,
    *sessions.ENDPOINTS,
    *agents.ENDPOINTS,
    *probes.ENDPOINTS,
)
