"""The server's numbers, for Prometheus."""

from prometheus_client import CONTENT_TYPE_PLAIN_0_0_4
from starlette.responses import Response

from limelight.server.endpoint import Call, Endpoint


async def metrics(call: Call) -> Response:
    """What the server does, in numbers, in the text format of Prometheus. Nothing in them tells users apart."""
    return Response(call.parts.metrics.shown(), headers={"content-type": CONTENT_TYPE_PLAIN_0_0_4})


ENDPOINTS = (
    Endpoint(
        method="GET",
        path="/metrics",
        summary="Numbers for Prometheus",
        call=metrics,
        reply="text/plain",
        scope="admin",
        tag="Administration",
    ),
)
