"""What can go wrong for a client.

    ClientError            anything that the server refused, or said in a way that we do not understand
    ├── NotFound           404: no such run, session, tool call, file, agent; or it is somebody else's
    ├── Unauthorized       401 and 403: the key is missing, wrong, or may not do this
    ├── Limited            429: too much at once, or too often; `retry_after` says when to try again
    ├── Busy               409 `session_busy`: the session has a live run, `run_id` names it
    ├── AlreadyDecided     409 `already_decided`: somebody else was faster, or the run is over
    ├── Expired            410 `expired`: the time to decide is over
    ├── NotOffered         422 `not_offered`: the approval does not offer this decision
    ├── ServerError        5xx, and a run that failed: then `code` is the run's own
    └── ConnectionLost     nobody answers, or the connection was cut and did not come back

`code` is the server's, see docs/errors.md; an answer that is not the server's own has the code `not_limelight`. This
module must not know httpx.
"""

from collections.abc import Iterator
from typing import NamedTuple

import msgspec

from limelight.errors import LimelightError


class FieldError(NamedTuple):
    """What is wrong with one field of the request."""

    path: str
    message: str


class ClientError(Exception):
    """The root. `status` is that of HTTP, 0 if there was no answer; `errors` say which fields are wrong; `retry_after`
    in how many seconds it is worth trying again, 0 if no time helps."""

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
    """It is not there, or not yours."""


class Unauthorized(ClientError):
    """The key is missing, wrong, or may not do this."""


class Limited(ClientError):
    """A limit of yours, or of the server's: `code` says which."""


class Busy(ClientError):
    """The session has a live run: `run_id`."""


class AlreadyDecided(ClientError):
    """Somebody else has decided, or the run is over. The first decision counts."""


class Expired(ClientError):
    """The time to decide is over, which was a no."""


class NotOffered(ClientError):
    """The approval does not offer this decision; `detail` says which it does."""


class ServerError(ClientError):
    """The server, or the run, failed."""


class ConnectionLost(ClientError):
    """Nobody answers."""


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


def refusal(status: int, body: bytes) -> ClientError:
    """The error for an answer that is no success. A body that is not ours gives its first line."""
    try:
        problem = msgspec.json.decode(body, type=_Problem)
    except msgspec.DecodeError:
        line = body.decode("utf-8", "replace").strip().partition("\n")[0][:200]
        problem = _Problem(detail=f"HTTP {status}: {line}" if line else f"HTTP {status}", code="not_limelight")
    return _class_of(status, problem.code)(
        problem.detail or f"HTTP {status}",
        status=status,
        code=problem.code,
        run_id=problem.run_id,
        errors=tuple(FieldError(error.path, error.message) for error in problem.errors),
        retry_after=problem.retry_after,
    )


def refusal_by_code(detail: str, code: str, run_id: str = "", retry_after: int = 0) -> ClientError:
    """The error for a refusal that came without a status, as on a socket: the same class and status as over HTTP."""
    status = _STATUS.get(code, 0)
    return _class_of(status, code)(detail, status=status, code=code, run_id=run_id, retry_after=retry_after)


def _kinds(root: type[LimelightError]) -> Iterator[type[LimelightError]]:
    yield root
    for kind in root.__subclasses__():
        yield from _kinds(kind)


_STATUS = {kind.code: kind.status for kind in reversed([*_kinds(LimelightError)])}


def _class_of(status: int, code: str) -> type[ClientError]:
    if status == 404:
        return NotFound
    if status in (401, 403):
        return Unauthorized
    if status == 429:
        return Limited
    return BY_CODE.get(code, ServerError if status >= 500 else ClientError)
