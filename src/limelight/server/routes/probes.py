"""Health and readiness probes, which need no key."""

from starlette.responses import Response

from limelight.runs.retention_clock import describe
from limelight.server.endpoint import ApiRequest, Router, to_response
from limelight.server.schemas import HealthView, ReadyView

router = Router("Probes")


@router.route("GET", "/health", "Liveness probe", public=True)
async def health(_: ApiRequest) -> HealthView:
    """The process answers."""
    return HealthView("ok")


@router.route("GET", "/ready", "Readiness probe", response=ReadyView, public=True)
async def ready(request: ApiRequest) -> Response:
    """The store can be written to and there are agents. 503 with the failed check otherwise.

    Agents that could not be opened are named under `agents_failed`; the next request to one opens it again, so
    the server must not be taken out of service for them. `retention` is there while retention is paused, and says why.
    """
    runtime = request.runtime
    failure = await runtime.readiness.store_failure()
    checks = {
        "server": "stopping" if runtime.is_draining else "ok",
        "store": "ok" if failure is None else ": ".join(filter(None, ("failed", failure.reason))),
        "agents": ", ".join(agent.name for agent in runtime.agents),
    }
    if failed := [agent.name for agent in runtime.agents if agent.source.failed]:
        checks["agents_failed"] = ", ".join(failed)
    if (pause := runtime.retention.pause) is not None:
        checks["retention"] = f"paused: {describe(pause)}"
    is_ready = failure is None and not runtime.is_draining
    response = to_response(ReadyView("ready" if is_ready else "not ready", checks), 200 if is_ready else 503)
    assert isinstance(response, Response)
    return response
