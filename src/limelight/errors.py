"""The error tree. Every error has a `code`, which is the same on every wire and in the documents.

    LimelightError
    ├── RequestError     the caller can mend it; becomes problem+json before a stream starts
    │   ├── BadRequest, BadJson, BadCursor, UnknownFormat (400), Unauthorized (401), Forbidden (403)
    │   ├── NotFound (404): RunNotFound, SessionNotFound, ToolNotFound, ArtifactNotFound, ApprovalNotFound, UnknownAgent
    │   ├── MethodNotAllowed (405), BodyTimeout (408),
    │   │   SessionBusy, SessionFull, QueueFull, AlreadyDecided, AgentNotServed (409), ApprovalExpired (410)
    │   ├── BodyTooLarge, TooManyMessages (413), UnsupportedMediaType (415),
    │   │   InvalidBody (422): EmptyMessages, NotOffered
    │   └── TooManyRequests, TooManyRuns, TooManySessions, TooManyStreams (429)
    ├── Draining         (503) no new work is taken
    ├── IssuerUnavailable (503) nobody can tell whether a token is right
    ├── RunError         ends a run: becomes `run_failed` with this code
    │   └── BadEvent, AgentFailed, EndedEarly, RunTimeout, SilenceTimeout, LogFull, Interrupted
    ├── StoreError       (503) the log cannot be used
    │   └── StoreUnavailable, StoreNewer, StoreCorrupt, StoreLocked, LeaseLost
    └── SetupError       wrong before anything runs: a setting, a target, a port; one line that names the fix
        └── TryLater     the same, but the very same start may work later: a full disk, a lock, a port that is taken

This module must not know HTTP beyond a status number, nor any store or framework.
"""

import math


class LimelightError(Exception):
    """The root. `detail` is one sentence for a human and, where possible, names the fix."""

    code: str = "internal"
    status: int = 500
    title: str = "Internal error"
    is_limit: bool = False
    """Whether it says that somebody has met a limit."""
    retry_after: int = 0
    """In how many seconds it is worth trying again, 0 if no time helps."""

    def __init__(self, detail: str = "") -> None:
        super().__init__(detail or self.title)
        self.detail = detail or self.title


class RequestError(LimelightError):
    """Something the caller sent. `errors` are (path, message) pairs; `run_id` names the run it is about."""

    code = "bad_request"
    status = 400
    title = "Bad request"

    def __init__(self, detail: str = "", *, path: str = "", run_id: str = "", retry_after: float = 0) -> None:
        super().__init__(detail)
        self.errors = [(path, detail)] if path else []
        self.run_id = run_id
        self.retry_after = math.ceil(retry_after)


class BadRequest(RequestError):
    """Anything that has no code of its own: a parameter that is out of range, say."""


class BadJson(RequestError):
    code = "bad_json"
    title = "The body is not valid JSON"


class BadCursor(RequestError):
    code = "bad_cursor"
    title = "A cursor is a number like 57 or 57.1"


class UnknownMessageType(RequestError):
    code = "unknown_message_type"
    title = "The socket does not know this message"


class UnknownFormat(RequestError):
    code = "unknown_format"
    title = "There is no such format"


class Unauthorized(RequestError):
    code = "unauthorized"
    status = 401
    title = "An API key is needed"


class Forbidden(RequestError):
    code = "forbidden"
    status = 403
    title = "Not allowed"


class NotFound(RequestError):
    code = "not_found"
    status = 404
    title = "Not found"


class RunNotFound(NotFound):
    code = "run_not_found"
    title = "There is no such run"


class SessionNotFound(NotFound):
    code = "session_not_found"
    title = "There is no such session"


class ToolNotFound(NotFound):
    code = "tool_not_found"
    title = "There is no such tool call in this run"


class ArtifactNotFound(NotFound):
    code = "artifact_not_found"
    title = "There is no such artifact"


class ApprovalNotFound(NotFound):
    code = "approval_not_found"
    title = "There is no such approval in this run"


class UnknownAgent(NotFound):
    code = "unknown_agent"
    title = "There is no such agent"


class MethodNotAllowed(RequestError):
    code = "method_not_allowed"
    status = 405
    title = "This route does not take that method"


class BodyTimeout(RequestError):
    code = "body_timeout"
    status = 408
    title = "The rest of the body did not come"
    is_limit = True


class SessionBusy(RequestError):
    code = "session_busy"
    status = 409
    title = "The session has a live run"


class SessionFull(RequestError):
    code = "session_full"
    status = 409
    title = "The session's log is full"
    is_limit = True


class QueueFull(RequestError):
    code = "queue_full"
    status = 409
    title = "Too many requests wait for this session"
    is_limit = True


class TooManyRequests(RequestError):
    code = "too_many_requests"
    status = 429
    title = "Too many requests in a minute"
    is_limit = True


class TooManyRuns(RequestError):
    code = "too_many_runs"
    status = 429
    title = "Too many runs at once"
    is_limit = True


class TooManySessions(RequestError):
    code = "too_many_sessions"
    status = 429
    title = "Too many sessions"
    is_limit = True


class TooManyStreams(RequestError):
    code = "too_many_streams"
    status = 429
    title = "Too many open streams"
    is_limit = True


class TooManyBytes(RequestError):
    code = "too_many_bytes"
    status = 429
    title = "Too much in requests at once"
    is_limit = True


class AlreadyDecided(RequestError):
    code = "already_decided"
    status = 409
    title = "The approval is already decided"


class AgentNotServed(RequestError):
    code = "agent_not_served"
    status = 409
    title = "This server does not have the agent of that run"


class AgentMismatch(RequestError):
    code = "agent_mismatch"
    status = 409
    title = "The session has another agent"


class NotProcessing(RequestError):
    code = "not_processing"
    status = 409
    title = "The session has no live run"


class ApprovalExpired(RequestError):
    code = "expired"
    status = 410
    title = "The approval has expired"


class BodyTooLarge(RequestError):
    code = "body_too_large"
    status = 413
    title = "The body is over the limit"
    is_limit = True


class TooManyMessages(RequestError):
    code = "too_many_messages"
    status = 413
    title = "Too many messages in one request"
    is_limit = True


class UnsupportedMediaType(RequestError):
    code = "unsupported_media_type"
    status = 415
    title = "Send application/json"


class InvalidBody(RequestError):
    code = "invalid"
    status = 422
    title = "The body does not have the expected shape"


class EmptyMessages(InvalidBody):
    code = "empty_messages"
    title = "`messages` needs at least one user message"


class NotOffered(InvalidBody):
    code = "not_offered"
    title = "The approval does not offer this decision"


class Draining(LimelightError):
    code = "shutting_down"
    status = 503
    title = "The server is shutting down"
    retry_after = 5


class IssuerUnavailable(LimelightError):
    code = "issuer_unavailable"
    status = 503
    title = "The issuer of tokens does not answer"


class RunError(LimelightError):
    """Ends a run as `run_failed` with this code."""

    status = 502
    title = "The run failed"


class BadEvent(RunError):
    code = "bad_event"
    title = "The agent did something out of order"


class AgentFailed(RunError):
    code = "agent_error"
    title = "The agent raised an error"


class EndedEarly(RunError):
    code = "ended_early"
    title = "The agent stopped without coming to an end"


class RunTimeout(RunError):
    code = "run_timeout"
    title = "The run took longer than its limit"
    is_limit = True


class SilenceTimeout(RunError):
    code = "silence_timeout"
    title = "The agent was silent for longer than its limit"
    is_limit = True


class LogFull(RunError):
    code = "log_full"
    title = "The session's log is full"
    is_limit = True


class Interrupted(RunError):
    code = "interrupted"
    title = "The server stopped while the run was going on"


class StoreError(LimelightError):
    """The log cannot be used."""

    code = "store_error"
    status = 503
    title = "The store cannot be used"


class StoreUnavailable(StoreError):
    """For now: it may work again without a restart. `words` say what is wrong to anybody, without a path or a name; if
    there are any, the store has told the log, once for all who get this error."""

    code = "store_unavailable"
    retry_after = 5

    def __init__(self, detail: str = "", *, words: str = "") -> None:
        super().__init__(detail)
        self.words = words


class StoreNewer(StoreError):
    code = "store_newer"
    title = "The database was made by a newer version of Limelight"


class StoreCorrupt(StoreError):
    code = "store_corrupt"
    title = "The database is damaged"


class StoreLocked(StoreError):
    code = "store_locked"
    title = "Another server uses this data folder"


class LeaseLost(StoreError):
    code = "lease_lost"
    title = "Another process has sealed this run"


class SetupError(LimelightError):
    """Wrong before anything runs. The detail is the line that a person gets to see; of several mistakes, one each."""

    code = "setup"
    title = "Limelight cannot start"


class TryLater(SetupError):
    """Nobody has to change how it is started: it may work in a while, and whoever restarts it should go on. `words` say
    what is wrong to anybody, without a path or a name."""

    def __init__(self, detail: str = "", *, words: str = "") -> None:
        super().__init__(detail)
        self.words = words


def all_errors() -> list[type[LimelightError]]:
    """Every error of this file, each code once."""
    found: dict[str, type[LimelightError]] = {}
    pending: list[type[LimelightError]] = [LimelightError]
    while pending:
        error = pending.pop(0)
        pending += error.__subclasses__()
        if error.__module__ == LimelightError.__module__:
            found.setdefault(error.code, error)
    return list(found.values())
