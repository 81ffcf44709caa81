"""The routes that start a run: a request with messages, answered by a stream or by the complete answer."""

import asyncio
from typing import Any

import msgspec

from limelight.auth.identity import user_id_error
from limelight.dialects.base import is_structured, text_of
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
from limelight.events import FinalAnswer
from limelight.ids import sortable_id
from limelight.links import result_url
from limelight.messages import Message
from limelight.models import Cursor, Run, SessionRef, User
from limelight.runs.queries import complete_answer, read_summary
from limelight.runs.queue import QueuedRun, Request, StoppedInQueue
from limelight.runs.run_input import checked_input, question_for
from limelight.runs.viewer import Format
from limelight.server.endpoint import FORMAT, ApiRequest, Router, check_request_id, check_session_id, validate
from limelight.server.request_body import wait_for_disconnect
from limelight.server.schemas import AnswerMessage, AnswerView, ChatBody, ChatView, ToolSummary
from limelight.server.sse import EventStream, StartingRun
from limelight.tracing.span import TRACEPARENT, normalize_traceparent

OUTPUT_PREVIEW = 10_000
"""Maximum number of characters of a tool's output in an answer. The route of the tool call returns all of it."""
START_SECONDS = 3
"""Time after which the response of a stream starts, even if its run has not begun. httpx times out after 5 seconds by
default."""
BEGIN_ERRORS: tuple[type[LimelightError], ...] = (
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
"""Errors that prevent the run of a request from beginning."""
router = Router("Chat")


class RunFailedResponse(RunError):
    """The error response for a failed run, with the code and the message of the run."""

    def __init__(self, run: Run) -> None:
        super().__init__(run.error.message if run.error else "")
        self.code = run.error.code if run.error else self.code
        self.run_id = run.run_id
        self.error_id = run.error.error_id if run.error else ""


@router.route(
    "POST",
    "/chat/stream",
    "Ask and watch",
    response="text/event-stream",
    query=(FORMAT,),
    body=ChatBody,
    errors=(*BEGIN_ERRORS, UnknownFormat),
)
async def chat_stream(request: ApiRequest) -> EventStream | ChatView:
    """Ask an agent and watch its work as server-sent events. With `"stream": false` get the complete answer as JSON."""
    format_ = request.format()
    queued, streams = await _enqueue(request)
    return await _stream(request, queued, format_) if streams else await _complete_answer(request, queued)


@router.route(
    "POST",
    "/chat",
    "Ask and wait",
    body=ChatBody,
    errors=(*BEGIN_ERRORS, AgentFailed, BadEvent, EndedEarly, RunTimeout, SilenceTimeout, LogFull, Interrupted),
)
async def chat(request: ApiRequest) -> ChatView:
    """Ask an agent and get its complete answer. The run continues if you disconnect."""
    queued, _ = await _enqueue(request)
    return await _complete_answer(request, queued)


async def _enqueue(request: ApiRequest) -> tuple[QueuedRun, bool]:
    """Create a QueuedRun from the body of a request. Return it, and whether the client wants a stream.

    The run does not begin here. The request is counted toward the rate limit of the user that the body names.
    """
    raw = await request.json()
    body = validate(raw, ChatBody)
    user = _user(request, body)
    await request.count(user.user_id)
    request.reservation.transfer(user.user_id)
    return QueuedRun.of(await _run_request(request, raw, body, user)), body.stream is not False


async def _run_request(request: ApiRequest, raw: Any, body: ChatBody, user: User) -> Request:
    asks = _check_messages(request, body)
    session_id = body.session_id or body.chat_id
    if session_id is not None:
        check_session_id(session_id, "session_id" if body.session_id else "chat_id")
    check_request_id(body.request_id or "")
    agents = request.runtime.agents
    name = body.agent or (body.model if isinstance(body.model, str) and body.model in agents else None)
    agent = agents.get(name)
    ref = SessionRef(user.user_id, session_id or sortable_id("ses_"))
    has_input = body.input is not None or bool(body.context)
    is_new = has_input and (session_id is None or await request.runtime.store.session(ref) is None)
    run_input = checked_input(agent, body.input, body.context, asks=asks, is_new=is_new)
    messages = [Message(message) for message in raw.get("messages") or ()]
    return Request(
        agent=agent,
        ref=ref,
        user=user,
        messages=messages if asks else [*messages, question_for(run_input.values or {})],
        input=run_input,
        if_busy=body.if_busy,
        request_id=body.request_id or "",
        continues_session=not body.chat_id or bool(body.session_id),
        traceparent=normalize_traceparent(request.http.headers.get(TRACEPARENT)),
    )


def _check_messages(request: ApiRequest, body: ChatBody) -> bool:
    """Check the number of messages. Return whether there is a question, which a request with an `input` may leave out.

    With an `input`, only the last message can be the question; messages that end with an answer are the conversation
    before the input.
    """
    messages = [] if body.messages is msgspec.UNSET else body.messages
    max_messages = request.runtime.settings.limits.request_messages
    if len(messages) > max_messages:
        raise TooManyMessages(f"{len(messages):,} messages; one request takes {max_messages:,}", path="messages")
    if body.input is not None:
        roles = [message.role for message in messages if message.role != "system"]
        return roles[-1:] == ["user"]
    if body.messages is msgspec.UNSET:
        raise InvalidBody("Object missing required field `messages`", path="messages")
    if not any(message.role == "user" for message in messages):
        raise EmptyMessages("`messages` needs at least one message with the role user", path="messages")
    return True


def _user(request: ApiRequest, body: ChatBody) -> User:
    """Return the user of the run.

    It is the user in the body, if the key may act on behalf of users and no header names a user; else the caller.
    """
    user_id = body.user_id or ""
    if not request.caller.has("on-behalf-of") or not user_id or request.caller.is_named:
        return request.user
    if mistake := user_id_error(user_id):
        raise InvalidBody(mistake, path="user_id")
    request.caller.check_user(user_id, "user_id")
    return User(user_id)


async def _stream(request: ApiRequest, queued: QueuedRun, format_: Format) -> EventStream:
    """Begin a run and return the stream of its events.

    If the run is queued or takes longer than START_SECONDS to begin, the response starts before the run.
    """
    runtime = request.runtime
    viewer = runtime.stream_viewer(queued.ref, format_).__enter__()

    async def begin() -> str:
        begun = await runtime.sessions.begin(queued)
        viewer.start(Cursor(begun.run.first_seq - 1), only_run=True, is_new_run=begun.created)
        return begun.run.run_id

    request.transfer_body(queued)
    task = runtime.spawn(begin())  # a task, so that a disconnect does not cancel the run
    try:
        await asyncio.wait({task, queued.queued}, timeout=START_SECONDS, return_when=asyncio.FIRST_COMPLETED)
        headers = {"x-session-id": queued.ref.session_id}
        if task.done():
            headers["x-run-id"] = task.result()
            return EventStream(request, viewer, headers)
        if queued.is_identified:
            headers["x-run-id"] = queued.run_id
        task.add_done_callback(runtime.metrics.count_task_error)  # after this, no error response
        return EventStream(request, viewer, headers, StartingRun(task, queued))
    except BaseException as error:
        viewer.__exit__()
        raise _refusal(error) from error


async def _complete_answer(request: ApiRequest, queued: QueuedRun) -> ChatView:
    with request.runtime.reserve_stream(queued.ref.owner):  # counts as a stream while it waits
        run_id = await _run_to_end(request, queued)
        if not await request.is_still_authorized():
            raise Unauthorized("the key of this request is no longer valid; the run has ended and is in its session")
        return await _chat_view(request, run_id)


async def _run_to_end(request: ApiRequest, queued: QueuedRun) -> str:
    """Begin a run, wait for its end, and return its id.

    Raises BadRequest if the client disconnects first, and Draining if the server shuts down. The run then continues.
    """
    runtime = request.runtime

    async def run() -> str:
        begun = await runtime.sessions.begin(queued)
        live = runtime.control.live_run(begun.run.run_id)
        if live is not None:
            await asyncio.wait({live.task})
        return begun.run.run_id

    request.transfer_body(queued)
    disconnect = asyncio.create_task(wait_for_disconnect(request.http.receive))
    try:
        return await runtime.wait_for(runtime.spawn(run()), disconnect)
    except StoppedInQueue as error:
        raise _refusal(error) from error
    finally:
        disconnect.cancel()


async def _chat_view(request: ApiRequest, run_id: str) -> ChatView:
    store = request.runtime.store
    run = await store.run(run_id)
    assert run is not None
    if run.state == "failed":
        raise RunFailedResponse(run)
    summary = await read_summary(store, run)
    answer = None if summary.answer is None else await complete_answer(store, run, summary.answer)
    return ChatView(
        message=AnswerMessage("assistant", summary.text if answer is None else text_of(answer.content)),
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
                outcome=tool.outcome,
                result_seen=tool.result_seen,
                duration_ms=tool.duration_ms,
                truncated=tool.args_cut or tool.result_cut or len(tool.output) > OUTPUT_PREVIEW,
                size=tool.size,
                result_url=request.root + result_url(run_id, "result", tool.call_id),
            )
            for tool in summary.calls.values()
        ],
    )


def _structured(answer: FinalAnswer | None) -> AnswerView | None:
    if answer is None or not is_structured(answer):
        return None
    return AnswerView(
        title=answer.title,
        content=answer.content,
        sources=answer.sources,
        source_links=answer.source_links,
        data=answer.data,
    )


def _refusal(error: BaseException) -> BaseException:
    if isinstance(error, StoppedInQueue):
        return SessionBusy("the request was stopped while it waited for the session")
    return error
