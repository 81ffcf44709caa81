"""Error responses: `application/problem+json` with a `code`, and never a traceback."""

import logging
from collections.abc import Mapping

import msgspec
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from limelight.errors import LimelightError, MethodNotAllowed, NotFound, RequestError, Unauthorized
from limelight.ids import sortable_id
from limelight.log_context import log_fields
from limelight.server.middleware.root_path import root_of
from limelight.server.middleware.security_headers import HEADERS

log = logging.getLogger(__name__)
UNEXPECTED_DETAIL = "unexpected error; the server's log has the details under the error_id"


class FieldError(msgspec.Struct):
    """An error in one field of a request."""

    path: str
    message: str


class Problem(msgspec.Struct, kw_only=True):
    """The JSON body of every error response, a problem document of RFC 9457."""

    type: str
    title: str
    status: int
    detail: str
    code: str
    errors: list[FieldError] = []
    run_id: str | msgspec.UnsetType = msgspec.UNSET
    error_id: str | msgspec.UnsetType = msgspec.UNSET
    retry_after: int | msgspec.UnsetType = msgspec.UNSET
    """Seconds after which a retry may succeed."""


class UnexpectedError(LimelightError):
    """A defect of the server. The client gets only an error id; the log has the details under that id."""

    def __init__(self, error_id: str) -> None:
        super().__init__(UNEXPECTED_DETAIL)
        self.error_id = error_id


def problem_response(error: LimelightError, scope: Scope) -> Response:
    """Return the error response for a Limelight error, with its status, headers and problem body."""
    problem = Problem(
        type=f"{root_of(scope)}/docs#error-{error.code}",
        title=error.title,
        status=error.status,
        detail=error.detail,
        code=error.code,
    )
    if isinstance(error, RequestError):
        problem.errors = [FieldError(path, message) for path, message in error.errors]
    problem.retry_after = error.retry_after or msgspec.UNSET
    problem.run_id = getattr(error, "run_id", "") or msgspec.UNSET
    problem.error_id = getattr(error, "error_id", "") or msgspec.UNSET
    headers: dict[str, str] = {"www-authenticate": "Bearer"} if isinstance(error, Unauthorized) else {}
    if problem.retry_after:
        headers["retry-after"] = str(problem.retry_after)
    return Response(msgspec.json.encode(problem), error.status, media_type="application/problem+json", headers=headers)


async def send_problem(error: LimelightError, scope: Scope, receive: Receive, send: Send) -> None:
    """Refuse a request or a WebSocket handshake with a problem response.

    An ASGI server that cannot send responses to handshakes refuses a handshake with status 403.
    """
    if scope["type"] == "http" or "websocket.http.response" in scope.get("extensions", {}):
        await problem_response(error, scope)(scope, receive, send)
    else:
        await send({"type": "websocket.close", "code": 1008, "reason": error.code})


async def on_limelight_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, LimelightError)
    request.app.state.runtime.metrics.count_refusal(error)
    return problem_response(error, request.scope)


async def on_http_exception(request: Request, error: Exception) -> Response:
    """Return the error response for an unknown path, or for a method that a path does not support."""
    assert isinstance(error, HTTPException)
    if error.status_code == 405:
        not_allowed = MethodNotAllowed(f"{request.url.path} does not take {request.method}")
        return problem_response(not_allowed, request.scope)
    return problem_response(NotFound(f"there is no {request.url.path}"), request.scope)


def path_ids(scope: Scope) -> dict[str, str]:
    """Return the run id and the session id in the path of a request, as fields for log messages."""
    params: Mapping[str, str] = scope.get("path_params", {})
    return log_fields(run_id=params.get("run_id", ""), session_id=params.get("session_id", ""))


async def on_unexpected_error(request: Request, error: Exception) -> Response:
    """Log an unexpected error with its traceback, and return an error response with the id of the log message."""
    error_id = sortable_id("err_")
    extra = {**path_ids(request.scope), **log_fields(error_id=error_id)}
    log.error("unexpected error in %s %s, %s", request.method, request.url.path, error_id, exc_info=error, extra=extra)
    response = problem_response(UnexpectedError(error_id), request.scope)
    response.headers.update(HEADERS)  # this response does not pass through the middleware
    return response
