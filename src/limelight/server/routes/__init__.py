"""The endpoints, by family. `ENDPOINTS` has all of them, in the order of the documents."""

from limelight.server.endpoint import Endpoint
from limelight.server.routes import admin, agents, chat, login, monitoring, runs, sessions
from limelight.server.v2 import rest as v2

ENDPOINTS: tuple[Endpoint, ...] = (
    *chat.ENDPOINTS,
    *runs.ENDPOINTS,
    *sessions.ENDPOINTS,
    *agents.ENDPOINTS,
    *v2.ENDPOINTS,
    *login.ENDPOINTS,
    *admin.ENDPOINTS,
    *monitoring.ENDPOINTS,
)
