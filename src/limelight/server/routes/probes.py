"""Probes: is the process alive, can it work. They need no key."""

import asyncio

from starlette.responses import Response

from limelight.errors import StoreError
from limelight.server.endpoint import Call, Endpoint, reply_with
from limelight.server.views import HealthView, ReadyView

PING_SECONDS = 5


async def health(_: Call) -> HealthView:
    """The process answers."""
    return HealthView("ok")


async def ready(call: Call) -> Response:
    """The store can be written to and there are agents. 503 with the failed check otherwise."""
    checks = {"store": "ok", "agents": ", ".join(agent.name for agent in call.parts.agents)}
    try:
        await asyncio.wait_for(call.parts.store.ping(), PING_SECONDS)
    except (StoreError, TimeoutError) as error:
        checks["store"] = str(error) or "no answer"
    fit = checks["store"] == "ok" and not call.parts.pulse.closing
    response = reply_with(ReadyView("ready" if fit else "not ready", checks), 200 if fit else 503)
    assert isinstance(response, Response)
    return response


ENDPOINTS = (
    Endpoint(
        method="GET", path="/health", summary="Is it alive", call=health, reply=HealthView, public=True, tag="Probes"
    ),
    Endpoint(
        method="GET", path="/ready", summary="Can it work", call=ready, reply=ReadyView, public=True, tag="Probes"
    ),
)
