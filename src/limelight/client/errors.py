"""Errors of the client.

    ClientError            the server refused a request, or answered in a way that the client does not understand
    ├── NotFound           404: the run, session, tool call, file or agent does not exist, or belongs to another user
    ├── Unauthorized       401 and 403: the key is missing, wrong, or lacks the scope
    ├── Limited            429: a limit is reached; `retry_after` says when to try again
    ├── Busy               409 `session_busy`: the session has a live run, which `run_id` names
    ├── AlreadyDecided     409 `already_decided`: the approval has a decision, or the run has ended
    ├── Expired            410 `expired`: the time to decide is over
    ├── NotOffered         422 `not_offered`: the approval does not offer this decision
    ├── ServerError        5xx, and a run that failed: then `code` is the code of the run
    └── ConnectionLost     the server does not answer, or the connection was lost and could not be restored

`code` is the code of the server, see docs/errors.md; a response that does not come from a Limelight server has the code
`not_limelight`. This module does not import httpx.
"""

from typing import NamedTuple

import msgspec

from limelight.errors import all_errors


class FieldError(NamedTuple):
    """An invalid field of a request: its path and the reason."""

    path: str
    message: str


class ClientError(Exception):
    """Base class of all errors of the client.

    `status` is the HTTP status, 0 without a response; `errors` names invalid fields; `retry_after` is the number of
    seconds after which a retry may succeed, 0 if none will.
    """

    def __init__(
        self,
        detail: str,
        *,
        status: int = 0,
        code: str = "",
        run_id: str = "",
        errors: tuple[FieldError, ...] = (),
        retry_after: int = 0,
    ) -> None:
        super().__init__(detail)
        self.detail = detail
        self.status = status
        self.code = code
        self.run_id = run_id
        self.errors = errors
        self.retry_after = retry_after


class NotFound(ClientError):
    """The resource does not exist, or belongs to another user."""


class Unauthorized(ClientError):
    """The key is missing, wrong, or lacks the scope."""


class Limited(ClientError):
    """A limit of the user or of the server is reached; `code` names it."""


class Busy(ClientError):
    """The session has a live run, which `run_id` names."""


class AlreadyDecided(ClientError):
    """The approval has a decision, or the run has ended. The first decision counts."""


class Expired(ClientError):
    """The time to decide is over, which counts as a rejection."""


class NotOffered(ClientError):
    """The approval request does not allow this decision; `detail` lists the allowed ones."""


class ServerError(ClientError):
    """The server or the run failed."""


class ConnectionLost(ClientError):
    """The server does not answer, the connection could not be restored, or the client is closed."""


BY_CODE: dict[str, type[ClientError]] = {
    "session_busy": Busy,
    "already_decided": AlreadyDecided,
    "expired": Expired,
    "not_offered": NotOffered,
}


class _FieldProblem(msgspec.Struct):
    path: str = ""
    message: str = ""


class _Problem(msgspec.Struct):
    detail: str = ""
    code: str = ""
    run_id: str = ""
    errors: list[_FieldProblem] = []
    retry_after: int = 0


def error_from_response(status: int, body: bytes) -> ClientError:
    """Return the error for an unsuccessful response. If its body is not problem+json, `detail` has its first line."""
    try:
        problem = msgspec.json.decode(body, type=_Problem)
    except msgspec.DecodeError:
        line = body.decode("utf-8", "replace").strip().partition("\n")[0][:200]
        problem = _Problem(detail=f"HTTP {status}: {line}" if line else f"HTTP {status}", code="not_limelight")
    return _error_class(status, problem.code)(
        problem.detail or f"HTTP {status}",
        status=status,
        code=problem.code,
        run_id=problem.run_id,
        errors=tuple(FieldError(error.path, error.message) for error in problem.errors),
        retry_after=problem.retry_after,
    )


def error_from_code(detail: str, code: str, run_id: str = "", retry_after: int = 0) -> ClientError:
    """Return the error for a code that was received on a socket, with the class and status that it has over HTTP."""
    status = _STATUS.get(code, 0)
    return _error_class(status, code)(detail, status=status, code=code, run_id=run_id, retry_after=retry_after)


def unsupported_data(error: msgspec.DecodeError) -> ClientError:
    """Return the error for a Record or a frame that this version of the client cannot decode."""
    return ClientError(
        f"the server sent data that this version cannot decode ({error}): is the client older?", code="bad_record"
    )


_STATUS = {error.code: error.status for error in all_errors()}


def _error_class(status: int, code: str) -> type[ClientError]:
    if status == 404:
        return NotFound
    if status in (401, 403):
        return Unauthorized
    if status == 429:
        return Limited
    return BY_CODE.get(code, ServerError if status >= 500 else ClientError)
