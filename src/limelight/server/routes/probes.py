"""Probes: is the process alive, can it work. They need no key."""

from starlette.responses import Response

from limelight.runs.retention import describe
from limelight.server.endpoint import Call, Endpoint, reply_with
from limelight.server.views import HealthView, ReadyView


async def health(_: Call) -> HealthView:
    """The process answers."""
    return HealthView("ok")


async def ready(call: Call) -> Response:
    """The store can be written to and there are agents. 503 with the failed check otherwise.

    Agents that could not be opened are named under `agents_failed`; the next who asks one has it tried again, so that
    the server must not be taken out of service for them. `retention` is there while retention is paused, and says why.
    """
    failure = await call.parts.probing.store_failure()
    checks = {
        "server": "stopping" if call.parts.draining else "ok",
        "store": "ok" if failure is None else ": ".join(filter(None, ("failed", failure.words))),
        "agents": ", ".join(agent.name for agent in call.parts.agents),
    }
    if failed := [agent.name for agent in call.parts.agents if agent.source.failed]:
        checks["agents_failed"] = ", ".join(failed)
    if (pause := call.parts.retention.pause) is not None:
        checks["retention"] = f"paused: {describe(pause)}"
    fit = failure is None and not call.parts.draining
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
