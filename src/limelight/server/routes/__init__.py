"""The HTTP endpoints, one module per topic. `ENDPOINTS` lists all of them, in the order of the documentation."""

from limelight.server.endpoint import Endpoint
from limelight.server.routes import admin, agents, chat, login, probes, runs, sessions
from limelight.server.v2 import rest as v2

ENDPOINTS: tuple[Endpoint, ...] = tuple(
    endpoint
    for module in (chat, runs, sessions, agents, v2, login, admin, probes)
    for endpoint in module.router.endpoints
)
