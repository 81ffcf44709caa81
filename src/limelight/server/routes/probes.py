"""The routes of the liveness and readiness probes, which need no key."""

from starlette.responses import Response

from limelight.runs.retention_clock import describe
from limelight.server.endpoint import ApiRequest, Router, to_response
from limelight.server.schemas import HealthView, ReadyView

router = Router("Probes")


@router.route("GET", "/health", "Liveness probe", public=True)
async def health(_: ApiRequest) -> HealthView:
    """Check that the process answers."""
    return HealthView("ok")


@router.route("GET", "/ready", "Readiness probe", response=ReadyView, public=True)
async def ready(request: ApiRequest) -> Response:
    """Check that the store can be written and the server is not stopping. Otherwise the status is 503.

    `agents_failed` lists agents that could not be opened. It does not change the status, because the next request to
    such an agent opens it again. `retention` appears while retention is paused, and gives the reason.
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
