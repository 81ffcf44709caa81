"""A route as data: what it takes, what it gives, what can go wrong. Routing and OpenAPI are both made from it."""

import asyncio
import re
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp

from limelight.auth.identity import Scope
from limelight.dialects.base import Cursor
from limelight.errors import (
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
    TooManyRequests,
    Unauthorized,
    UnsupportedMediaType,
)
from limelight.ids import now_ms
from limelight.models import Run, Session, SessionRef
from limelight.runs.queue import QueuedRun
from limelight.runs.viewer import Format
from limelight.server.auth.authenticator import Caller
from limelight.server.middleware.root_path import root_of
from limelight.server.rate_limit import REFUSAL_SECONDS
from limelight.server.request_body import read_body
from limelight.server.runtime import Parts

T = TypeVar("T")
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
SESSION_ID = re.compile(r"[A-Za-z0-9._:-]{1,128}")


class Param(msgspec.Struct, frozen=True):
    """A query parameter."""

    name: str
    description: str
    schema: dict[str, Any] = msgspec.field(default_factory=lambda: {"type": "string"})


class Call:
    """One request to an endpoint."""

    def __init__(self, request: Request, parts: Parts) -> None:
        self.request = request
        self.parts = parts
        self.caller: Caller = request.state.caller
        self.user = self.caller.user
        self.load = parts.loads.of(self.user.user_id)
        """What its body holds; whoever takes that over says when it is let go."""

    async def count(self, user_id: str) -> None:
        """Count it as a request of this user, unless it was counted as somebody's already. Raises TooManyRequests."""
        if not self.request.state.is_counted:
            self.request.state.is_counted = True
            await self.parts.rates.count(user_id)

    async def count_signal(self, run_id: str) -> None:
        """Count a Stop or an answer to an approval: on the budget of the run if it is the caller's, or as a request.

        Signals for a run that has not ended are never refused for rate. Those beyond its budget are answered more
        slowly. A run that has just ended has a budget too, because a Stop may come twice.
        """
        if self.request.state.is_counted:
            return
        is_live, is_recent = await self._state_of(run_id)
        if (is_live or is_recent) and self.parts.signals.spend(run_id):
            self.request.state.is_counted = True
        elif is_live:
            self.request.state.is_counted = True
            await asyncio.sleep(REFUSAL_SECONDS)
        else:
            await self.count(self.user.user_id)

    async def _state_of(self, run_id: str) -> tuple[bool, bool]:
        """Whether the caller has a run of this id, or a request that waits for its turn: a live one, an ended one."""
        waiting, live = self.parts.queues.find(run_id), self.parts.control.live_run(run_id)
        ref = waiting.ref if waiting is not None else live.execution.ref if live is not None else None
        if ref is not None:
            return ref.owner == self.user.user_id, False
        run = await self.parts.store.run(run_id)
        if run is None or run.ref.owner != self.user.user_id:
            return False, False
        return run.live, now_ms() - (run.ended_at or 0) < RECENT_MS

    def hand_over(self, place: QueuedRun) -> None:
        """Let the place hold what the body holds, until it is done with it. To be called when it is about to begin."""
        load, self.load = self.load, self.parts.loads.of(place.ref.owner)
        place.released.add_done_callback(lambda _: load.release())

    async def still_holds(self) -> bool:
        """Whether what let the caller in would do so now."""
        return await self.request.state.still_holds()

    @property
    def root(self) -> str:
        """What stands before a path of this server in a link."""
        return root_of(self.request.scope)

    def format(self) -> Format:
        """The format that the query names, or the default one."""
        return self.parts.format(self.query("format"), self.root)

    def path(self, name: str) -> str:
        return self.request.path_params[name]

    def query(self, name: str) -> str | None:
        return self.request.query_params.get(name)

    def number(self, name: str, default: int, *, low: int, high: int) -> int:
        """A whole number from the query."""
        text = self.query(name)
        if text is None:
            return default
        if not (text.isascii() and text.isdecimal() and len(text) < 10 and low <= int(text) <= high):
            raise BadRequest(f"{name} is a whole number from {low} to {high}", path=name)
        return int(text)

    def cursor(self) -> Cursor:
        """Where a stream goes on. The header of a reconnecting browser wins over the query."""
        return Cursor.parse(self.request.headers.get("last-event-id") or self.query("after") or "0")

    def ref(self, session_id: str) -> SessionRef:
        return SessionRef(self.user.user_id, session_id)

    async def run(self) -> Run:
        """The run of the path, if it is the caller's."""
        run = await self.parts.store.run(self.path("run_id"))
        if run is None or run.ref.owner != self.user.user_id:
            raise RunNotFound(f"there is no run {self.path('run_id')[:100]!r}")
        return run

    async def session(self) -> Session:
        """The session of the path, if it is the caller's."""
        session = await self.parts.store.session(self.ref(self.path("session_id")))
        if session is None:
            raise SessionNotFound(f"there is no session {self.path('session_id')[:100]!r}")
        return session

    @property
    def has_body(self) -> bool:
        headers = self.request.headers
        return headers.get("content-length", "0") != "0" or "transfer-encoding" in headers

    async def raw_json(self, at_most: int | None = None) -> Any:
        """The body as JSON, within the limit: that of the settings, or a lower one."""
        kind = self.request.headers.get("content-type", "").partition(";")[0].strip().lower()
        if kind != "application/json" and not kind.endswith("+json"):
            raise UnsupportedMediaType(f"send the body as application/json, not {kind or 'without a type'}")
        limit = self.parts.settings.limits.body_bytes
        body = await read_body(self.request, limit if at_most is None else min(limit, at_most), self.load)
        try:
            return msgspec.json.decode(body)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise BadJson(f"the body is not valid JSON: {error}") from error

    async def body(self, shape: type[T], *, at_most: int | None = None) -> T:
        """The body in the expected shape."""
        return shaped(await self.raw_json(at_most), shape)


def check_session_id(session_id: str, path: str) -> None:
    if not SESSION_ID.fullmatch(session_id):
        raise InvalidBody("a session id is 1 to 128 of A-Z a-z 0-9 . _ : -", path=path)


def shaped(value: Any, shape: type[T]) -> T:
    """Check a JSON value against a struct; raises InvalidBody with the field's path."""
    try:
        return msgspec.convert(value, shape)
    except msgspec.ValidationError as error:
        found = _PATH_IN_ERROR.match(str(error))
        assert found is not None
        path = (found["path"] or "$").removeprefix("$").lstrip(".")
        missing = _MISSING_FIELD.search(found["message"])
        if missing is not None:
            path = f"{path}.{missing[1]}".lstrip(".")
        raise InvalidBody(found["message"], path=path or "$") from error


class Endpoint(msgspec.Struct, frozen=True, kw_only=True):
    """One route. `reply` is the struct of its JSON answer, or the media type of another kind of answer.

    `errors` are its own; what can be wrong with any body goes without saying. `scope` is what a key must allow, None if
    any will do; a `public` route needs no key.
    """

    method: str
    path: str
    summary: str
    call: Callable[[Call], Awaitable[Any]]
    reply: type | str | None
    query: tuple[Param, ...] = ()
    body: type | None = None
    body_required: bool = True
    errors: tuple[type[LimelightError], ...] = ()
    status: int = 200
    scope: Scope | None = "use"
    public: bool = False
    tag: str = "Other"

    @property
    def all_errors(self) -> tuple[type[LimelightError], ...]:
        """Everything that this route can refuse, in the order of the statuses."""
        of_body = BODY_ERRORS if self.body is not None else ()
        if of_body and not self.public:
            of_body = (*of_body, TooManyBytes)
        of_key = () if self.public else (Unauthorized, Forbidden, TooManyRequests)
        return tuple(sorted({*self.errors, *of_body, *of_key}, key=lambda e: (e.status, e.code)))

    @property
    def shown_path(self) -> str:
        """The path as documents write it: a parameter that may contain slashes looks like any other."""
        return self.path.replace(":path}", "}")

    @property
    def description(self) -> str:
        return " ".join((self.call.__doc__ or "").split())


def reply_with(value: Any, status: int) -> ASGIApp:
    """What an endpoint returned, as a response: structs become JSON, responses stay what they are."""
    if isinstance(value, Response) or not isinstance(value, msgspec.Struct | dict | list | None):
        return value
    if value is None:
        return Response(status_code=204)
    return Response(msgspec.json.encode(value), status, media_type="application/json")
