"""The error classes. Each has a `code`, which is the same in every wire format and in the documentation.

    LimelightError (500, internal)
        RequestError (400, bad_request)
            BadRequest (400, bad_request)
            BadJson (400, bad_json)
            BadCursor (400, bad_cursor)
            UnknownMessageType (400, unknown_message_type)
            UnknownFormat (400, unknown_format)
            Unauthorized (401, unauthorized)
            Forbidden (403, forbidden)
            NotFound (404, not_found)
                RunNotFound (404, run_not_found)
                SessionNotFound (404, session_not_found)
                ToolNotFound (404, tool_not_found)
                ArtifactNotFound (404, artifact_not_found)
                ApprovalNotFound (404, approval_not_found)
                UnknownAgent (404, unknown_agent)
            MethodNotAllowed (405, method_not_allowed)
            BodyTimeout (408, body_timeout)
            SessionBusy (409, session_busy)
            SessionFull (409, session_full)
            QueueFull (409, queue_full)
            TooManyRequests (429, too_many_requests)
            TooManyRuns (429, too_many_runs)
            TooManySessions (429, too_many_sessions)
            TooManyStreams (429, too_many_streams)
            TooManyConnections (429, too_many_connections)
            TooManyBytes (429, too_many_bytes)
            AlreadyDecided (409, already_decided)
            AgentNotServed (409, agent_not_served)
            AgentMismatch (409, agent_mismatch)
            NotProcessing (409, not_processing)
            ApprovalExpired (410, expired)
            BodyTooLarge (413, body_too_large)
            TooManyMessages (413, too_many_messages)
            UnsupportedMediaType (415, unsupported_media_type)
            InvalidBody (422, invalid)
                EmptyMessages (422, empty_messages)
                NotOffered (422, not_offered)
        Draining (503, shutting_down)
        IssuerUnavailable (503, issuer_unavailable)
        RunError (502, internal)
            BadEvent (502, bad_event)
            AgentFailed (502, agent_error)
            EndedEarly (502, ended_early)
            RunTimeout (502, run_timeout)
            SilenceTimeout (502, silence_timeout)
            LogFull (502, log_full)
            Interrupted (502, interrupted)
        StoreError (503, store_error)
            StoreUnavailable (503, store_unavailable)
            StoreNewer (503, store_newer)
            StoreCorrupt (503, store_corrupt)
            StoreLocked (503, store_locked)
            LeaseLost (503, lease_lost)
        SetupError (500, setup)
            TryLater (500, setup)

A RequestError is sent as a problem document before a stream starts. A RunError ends a run as `run_failed`. A
SetupError ends the command line with one line that names the fix. This module knows of HTTP only status numbers, and
no store or framework.
"""

import math


class LimelightError(Exception):
    """The base class of all errors. `detail` is one sentence for people that names the fix where possible."""

    code: str = "internal"
    status: int = 500
    title: str = "Internal error"
    is_limit: bool = False
    """Whether the error means that a limit was reached."""
    retry_after: int = 0
    """Seconds after which the client should try again; 0 if a retry would not help."""

    def __init__(self, detail: str = "") -> None:
        super().__init__(detail or self.title)
        self.detail = detail or self.title


class RequestError(LimelightError):
    """The client sent an invalid request. `errors` are (path, message) pairs; `run_id` is the run of the request."""

    code = "bad_request"
    status = 400
    title = "Bad request"

    def __init__(self, detail: str = "", *, path: str = "", run_id: str = "", retry_after: float = 0) -> None:
        super().__init__(detail)
        self.errors = [(path, detail)] if path else []
        self.run_id = run_id
        self.retry_after = math.ceil(retry_after)


class BadRequest(RequestError):
    """An invalid request for which there is no more specific code, such as a parameter out of range."""


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
    title = "Unknown stream format"


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
    title = "Run not found"


class SessionNotFound(NotFound):
    code = "session_not_found"
    title = "Session not found"


class ToolNotFound(NotFound):
    code = "tool_not_found"
    title = "Tool call not found in this run"


class ArtifactNotFound(NotFound):
    code = "artifact_not_found"
    title = "Artifact not found"


class ApprovalNotFound(NotFound):
    code = "approval_not_found"
    title = "Approval not found in this run"


class UnknownAgent(NotFound):
    code = "unknown_agent"
    title = "Unknown agent"


class MethodNotAllowed(RequestError):
    code = "method_not_allowed"
    status = 405
    title = "This route does not take that method"


class BodyTimeout(RequestError):
    code = "body_timeout"
    status = 408
    title = "The request body did not arrive in time"
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


class TooManyConnections(RequestError):
    code = "too_many_connections"
    status = 429
    title = "Too many open connections"
    is_limit = True


class TooManyBytes(RequestError):
    code = "too_many_bytes"
    status = 429
    title = "Too much in requests or unread responses at once"
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
    """The base class of errors that end a run with the event `run_failed` and their code."""

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
    title = "The agent's stream ended without an end of the run"


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
    title = "The server stopped during the run"


class StoreError(LimelightError):
    """The store of sessions and runs cannot be used. Base class of all errors of stores."""

    code = "store_error"
    status = 503
    title = "The store cannot be used"


class StoreUnavailable(StoreError):
    """The store cannot be used now, but may work again without a restart of the server.

    `words` describe the fault to clients, without paths or names. If there are any, the store has logged the fault.
    """

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
    """The server cannot start: a setting, a target or a port is wrong. `detail` has one line for each mistake."""

    code = "setup"
    title = "Limelight cannot start"


class TryLater(SetupError):
    """The server cannot start now, but may later without a change: a full disk, a lock, a port in use.

    `words` describe the fault to clients, without paths or names.
    """

    def __init__(self, detail: str = "", *, words: str = "") -> None:
        super().__init__(detail)
        self.words = words


def all_errors() -> list[type[LimelightError]]:
    """Return the errors of this module, one for each code."""
    found: dict[str, type[LimelightError]] = {}
    pending: list[type[LimelightError]] = [LimelightError]
    while pending:
        error = pending.pop(0)
        pending += error.__subclasses__()
        if error.__module__ == LimelightError.__module__:
            found.setdefault(error.code, error)
    return list(found.values())
