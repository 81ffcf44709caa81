"""Declarations of endpoints: path, parameters, bodies and errors of each route. Routing and OpenAPI use them.

`ApiRequest` is the request that the handler of an endpoint gets.
"""

import asyncio
import math
import re
from collections.abc import Awaitable, Callable
from typing import Any, Protocol, TypeVar

import msgspec
from starlette.convertors import Convertor, register_url_convertor
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp

from limelight.auth.identity import Scope
from limelight.errors import (
    BadCursor,
    BadJson,
    BadRequest,
    BodyTimeout,
    BodyTooLarge,
    Forbidden,
    InvalidBody,
    LimelightError,
    RunNotFound,
    SessionNotFound,
    TooManyBytes,
    TooManyConnections,
    TooManyRequests,
    Unauthorized,
    UnsupportedMediaType,
)
from limelight.events import JsonValue, RequestedDecision
from limelight.ids import now_ms
from limelight.models import Cursor, Decide, Run, Session, SessionRef
from limelight.runs.queue import QueuedRun
from limelight.runs.viewer import Format
from limelight.server.auth.authenticator import ANONYMOUS, Caller
from limelight.server.middleware.root_path import root_of
from limelight.server.rate_limit import REFUSAL_DELAY_SECONDS
from limelight.server.request_body import PUBLIC_BODY_SECONDS, SIGNAL_BYTES, read_body
from limelight.server.runtime import Runtime
from limelight.server.schemas import MAX_REQUEST_ID

T = TypeVar("T")


class TextConvertor(Convertor[str]):
    """A path converter for routes that matches the rest of a path, with slashes and, unlike `path`, line breaks."""

    regex = "(?s:.*)"

    def convert(self, value: str) -> str:
        return value

    def to_string(self, value: str) -> str:
        return value


register_url_convertor("text", TextConvertor())
_PATH_IN_ERROR = re.compile(r"^(?P<message>.*?)(?: - at `(?P<path>.*)`)?$", re.DOTALL)
BODY_ERRORS: tuple[type[LimelightError], ...] = (
    BadJson,
    BodyTimeout,
    BodyTooLarge,
    UnsupportedMediaType,
    InvalidBody,
)
_MISSING_FIELD = re.compile(r"missing required field `(\w+)`")
RECENT_MS = 60_000
"""Milliseconds after the end of a run in which Stop and decisions count toward the run's own limit, not the user's."""
SESSION_ID = re.compile(r"[A-Za-z0-9._:-]{1,128}")


class Param(msgspec.Struct, frozen=True):
    """The declaration of a query parameter, for the documentation."""

    name: str
    description: str
    schema: dict[str, Any] = msgspec.field(default_factory=lambda: {"type": "string"})


FORMAT = Param("format", "Stream format: typed, tool_calls, v2, records, or another that is installed")
AFTER = Param("after", "Cursor: everything up to it is known. The header `Last-Event-ID` wins over it")


class ApiRequest:
    """A request to an endpoint, with its caller and its runtime. `http` is Starlette's request."""

    def __init__(self, http: Request, runtime: Runtime) -> None:
        self.http = http
        self.runtime = runtime
        self.caller: Caller = http.state.caller
        self.user = self.caller.user
        self.reservation = runtime.body_budget.reserve(self.user.user_id)
        """The bytes of the request body that count toward the user's memory limit."""

    async def count(self, user_id: str) -> None:
        """Count this request toward the rate limit of a user, unless it is already counted. Raises TooManyRequests."""
        if not self.http.state.is_counted:
            self.http.state.is_counted = True
            await self.runtime.rate_limiter.count(user_id)

    async def count_signal(self, run_id: str) -> None:
        """Count a request that stops a run or decides on an approval. Call this before the body is read.

        A run has its own budget of such requests. For a live or queued run of the caller none is refused: beyond the
        budget it is only delayed, and SIGNAL_BYTES of its body need no memory of the user's limit. A run that has just
        ended still has its budget, because a Stop may be sent twice. In all other cases it counts as any request of the
        caller. Raises TooManyRequests.
        """
        if self.http.state.is_counted:
            return
        is_live, is_recent = await self._own_run_state(run_id)
        self.reservation.free_bytes = SIGNAL_BYTES if is_live else 0
        if (is_live or is_recent) and self.runtime.signal_buckets.spend(run_id):
            self.http.state.is_counted = True
        elif is_live:
            self.http.state.is_counted = True
            await asyncio.sleep(REFUSAL_DELAY_SECONDS)
        else:
            await self.count(self.user.user_id)

    async def _own_run_state(self, run_id: str) -> tuple[bool, bool]:
        """Return two flags: the run is a live or queued run of the caller; it is a run of theirs that just ended."""
        queued, live = self.runtime.queues.find(run_id), self.runtime.control.live_run(run_id)
        ref = queued.ref if queued is not None else live.execution.ref if live is not None else None
        if ref is not None:
            return self.owns(ref), False
        run = await self.runtime.store.run(run_id)
        if run is None or not self.owns(run.ref):
            return False, False
        return run.live, now_ms() - (run.ended_at or 0) < RECENT_MS

    def transfer_body(self, queued: QueuedRun) -> None:
        """Keep the bytes of the body reserved until the queued run drops its messages. Call it just before `begin`."""
        reservation, self.reservation = self.reservation, self.runtime.body_budget.reserve(queued.ref.owner)
        queued.released.add_done_callback(lambda _: reservation.release())

    async def is_still_authorized(self) -> bool:
        """Whether the key or token of the request is still valid for the same caller."""
        return await self.http.state.is_still_authorized()

    @property
    def root(self) -> str:
        """The root path, which is the prefix of links to this server."""
        return root_of(self.http.scope)

    def format(self) -> Format:
        """Return the stream format that the query names, or the default format. Raises UnknownFormat."""
        return self.runtime.format(self.query("format"), self.root)

    def path(self, name: str) -> str:
        return self.http.path_params[name]

    def query(self, name: str) -> str | None:
        return self.http.query_params.get(name)

    def query_int(self, name: str, default: int, *, low: int, high: int) -> int:
        """Return an integer parameter of the query. Raises BadRequest if it is not an integer or out of range."""
        text = self.query(name)
        if text is None:
            return default
        if not (text.isascii() and text.isdecimal() and len(text) < 10 and low <= int(text) <= high):
            raise BadRequest(f"{name} is a whole number from {low} to {high}", path=name)
        return int(text)

    def cursor(self) -> Cursor:
        """Return the cursor at which a stream resumes, from the header `Last-Event-ID` or else from the query."""
        return Cursor.parse(self.http.headers.get("last-event-id") or self.query("after") or "0")

    def ref(self, session_id: str) -> SessionRef:
        return SessionRef(self.user.user_id, session_id)

    def owns(self, ref: SessionRef) -> bool:
        """Whether a session belongs to the caller. To all other users it does not exist."""
        return ref.owner == self.user.user_id

    def queued_run(self) -> QueuedRun | None:
        """Return the caller's queued run that the path names, None if there is none."""
        queued = self.runtime.queues.find(self.path("run_id"))
        return queued if queued is not None and self.owns(queued.ref) else None

    async def run(self) -> Run:
        """Return the run that the path names. Raises RunNotFound, also for runs of other users."""
        run = await self.runtime.store.run(self.path("run_id"))
        if run is None or not self.owns(run.ref):
            raise RunNotFound(f"there is no run {self.path('run_id')[:100]!r}")
        return run

    async def session(self) -> Session:
        """Return the caller's session that the path names. Raises SessionNotFound."""
        session = await self.runtime.store.session(self.ref(self.path("session_id")))
        if session is None:
            raise SessionNotFound(f"there is no session {self.path('session_id')[:100]!r}")
        return session

    @property
    def has_body(self) -> bool:
        headers = self.http.headers
        return headers.get("content-length", "0") != "0" or "transfer-encoding" in headers

    async def json(self, max_bytes: int | None = None) -> Any:
        """Return the decoded JSON body. Its size limit is the lower one of the settings and `max_bytes`.

        Raises UnsupportedMediaType, BadJson, and the errors of `read_body`.
        """
        media_type = self.http.headers.get("content-type", "").partition(";")[0].strip().lower()
        if media_type != "application/json" and not media_type.endswith("+json"):
            raise UnsupportedMediaType(f"send the body as application/json, not {media_type or 'without a type'}")
        limit = self.runtime.settings.limits.body_bytes
        limit = limit if max_bytes is None else min(limit, max_bytes)
        max_seconds = PUBLIC_BODY_SECONDS if self.caller is ANONYMOUS else math.inf
        return await self.runtime.json_decoder.decode(await read_body(self.http, limit, self.reservation, max_seconds))

    async def body(self, schema: type[T], *, max_bytes: int | None = None) -> T:
        """Return the body as a validated struct. Raises InvalidBody, and the errors of `json`."""
        return validate(await self.json(max_bytes), schema)


def check_session_id(session_id: str, path: str) -> None:
    if not SESSION_ID.fullmatch(session_id):
        raise InvalidBody("a session id is 1 to 128 of A-Z a-z 0-9 . _ : -", path=path)


def check_cursor(cursor: Cursor, last_seq: int) -> None:
    """Raise BadCursor if a cursor is beyond the end of the log, as one from a deleted session with the same id."""
    if cursor.seq > last_seq:
        raise BadCursor(f"the log ends at {last_seq}: this cursor is from another one", path="after")


def check_request_id(request_id: str) -> None:
    if len(request_id) > MAX_REQUEST_ID:
        raise InvalidBody(f"a request id has at most {MAX_REQUEST_ID} characters", path="request_id")


class DecisionRequest(Protocol):
    """A client's decision on an approval, from the body of a request or a command of the socket."""

    @property
    def decision(self) -> RequestedDecision: ...
    @property
    def args(self) -> dict[str, Any] | None: ...
    @property
    def answer(self) -> JsonValue | msgspec.UnsetType: ...


def check_decision(request: DecisionRequest) -> None:
    """Raise InvalidBody if an edit has no edited arguments, or a response no answer."""
    if request.decision == "edit" and request.args is None:
        raise InvalidBody("to edit, send the new args", path="args")
    if request.decision == "respond" and request.answer is msgspec.UNSET:
        raise InvalidBody("to respond, send the answer", path="answer")


def decision_of(run_id: str, approval_id: str, request: DecisionRequest, reason: str, by: str) -> Decide:
    """Convert a client's decision to the signal for its run. Raises InvalidBody if something is missing."""
    check_decision(request)
    if request.decision == "respond":
        return Decide(run_id, approval_id, "edit", {"value": request.answer}, reason, by, answered=True)
    return Decide(run_id, approval_id, request.decision, request.args, reason, by)


def validate(value: Any, schema: type[T]) -> T:
    """Convert a JSON value to a struct. Raises InvalidBody with the path of the invalid field."""
    try:
        return msgspec.convert(value, schema)
    except msgspec.ValidationError as error:
        found = _PATH_IN_ERROR.match(str(error))
        assert found is not None
        path = (found["path"] or "$").removeprefix("$").lstrip(".")
        missing = _MISSING_FIELD.search(found["message"])
        if missing is not None:
            path = f"{path}.{missing[1]}".lstrip(".")
        raise InvalidBody(found["message"], path=path or "$") from error


Handler = Callable[[ApiRequest], Awaitable[Any]]
H = TypeVar("H", bound=Handler)


class Endpoint(msgspec.Struct, frozen=True, kw_only=True):
    """The declaration of one HTTP route: its path, handler, bodies and errors.

    `response` is the struct of a JSON response, the media type of another response, or None for no body. `errors` are
    the errors that are specific to this route. `scope` is the scope that a key needs, None if every key is enough. A
    `public` route needs no key.
    """

    method: str
    path: str
    summary: str
    tag: str
    handler: Handler
    response: type | str | None
    query: tuple[Param, ...]
    body: type | None
    body_required: bool
    errors: tuple[type[LimelightError], ...]
    scope: Scope | None
    public: bool
    is_large: bool
    """Whether a response may be large and is built in memory, so that it counts toward the user's memory limit."""

    @property
    def status(self) -> int:
        """The HTTP status of a successful response."""
        return 204 if self.response is None else 200

    @property
    def all_errors(self) -> tuple[type[LimelightError], ...]:
        """All errors of this route, including those of request bodies and keys, ordered by status."""
        body_errors = BODY_ERRORS if self.body is not None else ()
        if body_errors and not self.public:
            body_errors = (*body_errors, TooManyBytes)
        key_errors = () if self.public else (Unauthorized, Forbidden, TooManyRequests, TooManyConnections)
        large_errors = (TooManyBytes,) if self.is_large else ()
        return tuple(sorted({*self.errors, *body_errors, *large_errors, *key_errors}, key=lambda e: (e.status, e.code)))

    @property
    def documented_path(self) -> str:
        """The path for the documentation, without Starlette's converters."""
        return self.path.replace(":text}", "}")

    @property
    def description(self) -> str:
        return " ".join((self.handler.__doc__ or "").split())


class Router:
    """Collects the endpoints of a module. The documentation groups them under `tag`."""

    def __init__(self, tag: str, *, scope: Scope = "use") -> None:
        self._tag = tag
        self._scope: Scope = scope
        self.endpoints: list[Endpoint] = []

    def route(
        self,
        method: str,
        path: str,
        summary: str,
        *,
        response: type | str | None = Response,
        query: tuple[Param, ...] = (),
        body: type | None = None,
        body_required: bool = True,
        errors: tuple[type[LimelightError], ...] = (),
        needs_scope: bool = True,
        public: bool = False,
        is_large: bool = False,
    ) -> Callable[[H], H]:
        """Return a decorator that registers a handler as an endpoint.

        `response` is needed only if the handler's return annotation is not the struct of the response.
        """

        def register(handler: H) -> H:
            self.endpoints.append(
                Endpoint(
                    method=method,
                    path=path,
                    summary=summary,
                    tag=self._tag,
                    handler=handler,
                    response=handler.__annotations__["return"] if response is Response else response,
                    query=query,
                    body=body,
                    body_required=body_required,
                    errors=errors,
                    scope=self._scope if needs_scope else None,
                    public=public,
                    is_large=is_large,
                )
            )
            return handler

        return register


def to_response(value: Any, status: int) -> ASGIApp:
    """Convert the return value of a handler to a response.

    A struct becomes JSON, and None an empty response. A response or another ASGI application is returned unchanged.
    """
    if isinstance(value, Response) or not isinstance(value, msgspec.Struct | dict | list | None):
        return value
    if value is None:
        return Response(status_code=204)
    return Response(msgspec.json.encode(value), status, media_type="application/json")
