"""One turn: a request in, a stream or a whole answer out."""

import asyncio
from typing import Any

import msgspec

from limelight.auth.identity import user_id_error
from limelight.dialects.base import Cursor, is_structured, text_of
from limelight.errors import (
    AgentFailed,
    BadEvent,
    Draining,
    EmptyMessages,
    EndedEarly,
    Interrupted,
    InvalidBody,
    LimelightError,
    LogFull,
    QueueFull,
    RunError,
    RunTimeout,
    SessionBusy,
    SessionFull,
    SilenceTimeout,
    TooManyMessages,
    TooManyRuns,
    TooManySessions,
    TooManyStreams,
    Unauthorized,
    UnknownAgent,
    UnknownFormat,
)
from limelight.events import FinalAnswer, JsonValue
from limelight.ids import sortable_id
from limelight.links import result_url
from limelight.messages import Message
from limelight.models import Run, SessionRef
from limelight.runs.queries import read_summary, whole_value
from limelight.runs.queue import QueuedRun, Request, StoppedInQueue
from limelight.runs.viewer import Format
from limelight.server.endpoint import Call, Endpoint, check_session_id, shaped
from limelight.server.request_body import gone
from limelight.server.request_schemas import MAX_REQUEST_ID, ChatBody
from limelight.server.routes.params import FORMAT
from limelight.server.routes.refused_stream import refusal_frames
from limelight.server.sse import EventStream
from limelight.server.views import AnswerMessage, AnswerView, ChatView, ToolSummary
from limelight.sources.base import User
from limelight.tracing.span import TRACEPARENT, normalize_traceparent

OUTPUT_PREVIEW = 10_000
"""Characters of what a tool printed that a whole answer repeats; the tool's own route has all of it."""
START_SECONDS = 3
"""How long the start of a run may delay the response of a stream: httpx waits 5 seconds for it by default."""


class RunFailedResponse(RunError):
    """A whole answer was asked for and the run failed: its own code and message, as problem+json."""

    def __init__(self, run: Run) -> None:
        super().__init__(run.error.message if run.error else "")
        self.code = run.error.code if run.error else self.code
        self.run_id = run.run_id
        self.error_id = run.error.error_id if run.error else ""


async def chat_stream(call: Call) -> EventStream | ChatView:
    """Ask an agent and watch it work, as server-sent events. With `"stream": false` the whole answer as JSON."""
    format_ = call.format()
    place, is_whole = await _asked(call)
    return await _whole(call, place) if is_whole else await _stream(call, place, format_)


async def chat(call: Call) -> ChatView:
    """Ask an agent and get its whole answer. The run goes on if you leave."""
    place, _ = await _asked(call)
    return await _whole(call, place)


async def _asked(call: Call) -> tuple[QueuedRun, bool]:
    """A place for what the body asks for, which alone keeps it; and whether the answer is wanted as a whole."""
    raw = await call.raw_json()
    body = shaped(raw, ChatBody)
    user = _user(call, body)
    await call.count(user.user_id)
    call.load.belong_to(user.user_id)
    return QueuedRun.of(_request(call, raw, body, user)), body.stream is False


def _request(call: Call, raw: Any, body: ChatBody, user: User) -> Request:
    most = call.parts.settings.limits.request_messages
    if len(body.messages) > most:
        raise TooManyMessages(f"{len(body.messages):,} messages; one request takes {most:,}", path="messages")
    if not any(message.role == "user" for message in body.messages):
        raise EmptyMessages("`messages` needs at least one message with the role user", path="messages")
    session_id = body.session_id or body.chat_id
    if session_id is not None:
        check_session_id(session_id, "session_id" if body.session_id else "chat_id")
    if body.request_id is not None and len(body.request_id) > MAX_REQUEST_ID:
        raise InvalidBody(f"a request id has at most {MAX_REQUEST_ID} characters", path="request_id")
    agents = call.parts.agents
    named = body.agent or (body.model if isinstance(body.model, str) and body.model in agents else None)
    return Request(
        agent=agents.get(named),
        ref=SessionRef(user.user_id, session_id or sortable_id("ses_")),
        user=user,
        messages=[Message(message) for message in raw["messages"]],
        if_busy=body.if_busy,
        request_id=body.request_id or "",
        continues_session=not body.chat_id or bool(body.session_id),
        traceparent=normalize_traceparent(call.request.headers.get(TRACEPARENT)),
    )


def _user(call: Call, body: ChatBody) -> User:
    """With a key that speaks for others the body may name the user, if the header does not."""
    user_id = (body.user_id or "").strip()
    if not call.caller.may("on-behalf-of") or not user_id or call.caller.is_named:
        return call.user
    if wrong := user_id_error(user_id):
        raise InvalidBody(wrong, path="user_id")
    call.caller.check_names(user_id, "user_id")
    return User(user_id)


async def _stream(call: Call, place: QueuedRun, format_: Format) -> EventStream:
    """Begin the run and follow it. If it waits for its turn or takes long to begin, the response starts before it."""
    parts = call.parts
    viewer = parts.stream_viewer(place.ref, format_).__enter__()

    async def begin() -> str:
        begun = await parts.sessions.begin(place)
        viewer.start(Cursor(begun.run.first_seq - 1), only_run=True, fresh=begun.created)
        return begun.run.run_id

    call.hand_over(place)
    # A task of its own: a client that leaves while its request is being taken does not undo it.
    beginning = parts.spawn(begin())
    try:
        await asyncio.wait({beginning, place.queued}, timeout=START_SECONDS, return_when=asyncio.FIRST_COMPLETED)
        headers = {"x-session-id": place.ref.session_id}
        if not beginning.done():
            if place.is_identified:
                headers["x-run-id"] = place.run_id
            beginning.add_done_callback(parts.metrics.ended)  # what it is refused for now is no answer of HTTP's
            return EventStream(
                viewer,
                parts.pulse,
                headers,
                call.still_holds,
                beginning,
                lambda error: refusal_frames(format_, place, error),
            )
        headers["x-run-id"] = beginning.result()
        return EventStream(viewer, parts.pulse, headers, call.still_holds)
    except BaseException as error:
        viewer.__exit__()
        raise _refusal(error) from error


async def _whole(call: Call, place: QueuedRun) -> ChatView:
    """Who waits for an answer is one who watches."""
    with call.parts.stream_place(place.ref.owner):
        run_id = await _ended(call, place)
        if not await call.still_holds():
            raise Unauthorized("the key that asked does not hold any more; the run has ended, and is in its session")
        return await _answer(call, run_id)


async def _ended(call: Call, place: QueuedRun) -> str:
    """The run that is begun, when it is over. Nobody waits here for a client that has left."""
    parts = call.parts

    async def begin_and_end() -> str:
        begun = await parts.sessions.begin(place)
        live = parts.control.live_run(begun.run.run_id)
        if live is not None:
            await asyncio.wait({live.task})
        return begun.run.run_id

    call.hand_over(place)
    leaving = asyncio.create_task(gone(call.request))
    try:
        return await parts.unless_closing(parts.spawn(begin_and_end()), leaving)
    except StoppedInQueue as error:
        raise _refusal(error) from error
    finally:
        leaving.cancel()


async def _answer(call: Call, run_id: str) -> ChatView:
    parts = call.parts
    run = await parts.store.run(run_id)
    assert run is not None
    if run.state == "failed":
        raise RunFailedResponse(run)
    story = await read_summary(parts.store, run)
    content: JsonValue = story.text
    answer = story.answer
    if answer is not None:
        content = await whole_value(parts.store, run, "content", "", answer.content, answer.truncated)
        answer = msgspec.structs.replace(answer, content=content)
    return ChatView(
        message=AnswerMessage("assistant", text_of(content)),
        answer=_structured(answer),
        run_id=run_id,
        session_id=run.ref.session_id,
        state=run.state,
        tools=[
            ToolSummary(
                call_id=tool.call_id,
                name=tool.name,
                args=tool.args,
                output=tool.output[:OUTPUT_PREVIEW],
                result=tool.result,
                error=tool.error,
                result_seen=tool.result_seen,
                duration_ms=tool.duration_ms,
                truncated=tool.args_cut or tool.result_cut or len(tool.output) > OUTPUT_PREVIEW,
                size=tool.size,
                result_url=call.root + result_url(run_id, "result", tool.call_id),
            )
            for tool in story.calls.values()
        ],
    )


def _structured(answer: FinalAnswer | None) -> AnswerView | None:
    if answer is None or not is_structured(answer):
        return None
    return AnswerView(title=answer.title, content=answer.content, sources=answer.sources)


def _refusal(error: BaseException) -> BaseException:
    if isinstance(error, StoppedInQueue):
        return SessionBusy("the request was stopped while it waited for the session")
    return error


_ERRORS: tuple[type[LimelightError], ...] = (
    UnknownAgent,
    SessionBusy,
    SessionFull,
    QueueFull,
    TooManyMessages,
    EmptyMessages,
    TooManyRuns,
    TooManySessions,
    TooManyStreams,
    Draining,
)

ENDPOINTS = (
    Endpoint(
        method="POST",
        path="/chat/stream",
        summary="Ask and watch",
        call=chat_stream,
        reply="text/event-stream",
        query=(FORMAT,),
        body=ChatBody,
        errors=(*_ERRORS, UnknownFormat),
        tag="Chat",
    ),
    Endpoint(
        method="POST",
        path="/chat",
        summary="Ask and wait",
        call=chat,
        reply=ChatView,
        body=ChatBody,
        errors=(*_ERRORS, AgentFailed, BadEvent, EndedEarly, RunTimeout, SilenceTimeout, LogFull, Interrupted),
        tag="Chat",
    ),
)
