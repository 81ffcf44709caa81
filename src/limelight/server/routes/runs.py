"""The routes of runs: state, stream, Stop, decisions, complete values and files."""

import asyncio
from collections.abc import AsyncIterator
from functools import partial
from urllib.parse import quote

from starlette.responses import Response, StreamingResponse

from limelight.dialects.base import Cursor, text_of
from limelight.errors import (
    AgentNotServed,
    AlreadyDecided,
    ApprovalExpired,
    ApprovalNotFound,
    ArtifactNotFound,
    BadCursor,
    InvalidBody,
    NotFound,
    NotOffered,
    RunNotFound,
    ToolNotFound,
    TooManyStreams,
    UnknownFormat,
)
from limelight.events import JsonValue
from limelight.links import call_id_of_segment, link
from limelight.models import Decide, Run
from limelight.runs.hub import FrameBatch
from limelight.runs.queries import (
    StoredValue,
    complete_answer,
    complete_body,
    complete_value,
    input_of,
    read_answer,
    read_call,
    stored_value,
)
from limelight.runs.queue import QueuedRun
from limelight.runs.viewer import Format, Viewer
from limelight.server.endpoint import AFTER, FORMAT, ApiRequest, Param, Router, validate
from limelight.server.schemas import (
    MAX_REASON,
    ApprovalView,
    CancelBody,
    DecidedView,
    DecisionBody,
    DecisionView,
    RunView,
    StateView,
    ToolView,
    run_view,
)
from limelight.server.sse import EventStream, StartingRun

STOP_SECONDS = 2
"""Time for which the response to a Stop waits for the end of the run."""
FIRST_BATCH_SECONDS = 1
"""Time for which the response to a resume of an ended run waits for the log. After that, the stream begins."""
CHUNK = 256 * 1024
"""Size in bytes of the chunks in which a large value is sent."""
ZERO_OR_ONE = {"type": "string", "enum": ["0", "1"]}
TEXT = Param("text", "1: the text of a structured answer, without its title and sources", ZERO_OR_ONE)
RAW = Param("raw", "1: the result itself instead of JSON about it", ZERO_OR_ONE)
router = Router("Runs")


@router.route("GET", "/runs/{run_id}", "Read a run", errors=(RunNotFound,))
async def get_run(request: ApiRequest) -> RunView:
    """Read the state of a run (queued, running, waiting, finished, failed or cancelled) and its open approvals."""
    queued = _own_queued(request)
    if queued is not None:
        return RunView(
            run_id=queued.run_id,
            session_id=queued.ref.session_id,
            agent=queued.request.agent.name,
            request_id=queued.request.request_id,
            state="queued",
            started_at=None,
            ended_at=None,
            error=None,
            approvals=[],
        )
    run = await request.run()
    return run_view(run, await _open_approvals(request, run))


async def _open_approvals(request: ApiRequest, run: Run) -> list[ApprovalView]:
    return [
        ApprovalView(
            approval_id=approval.approval_id,
            call_id=approval.call_id,
            name=approval.name,
            args=approval.args,
            decisions=approval.decisions,
            expires_at=approval.expires_at,
            truncated=approval.truncated,
            size=approval.size,
            result_url=link(request.root, approval.result_url),
        )
        for approval in await request.runtime.control.open_approvals(run)
    ]


@router.route(
    "GET",
    "/runs/{run_id}/stream",
    "Watch or resume a run",
    response="text/event-stream",
    query=(FORMAT, AFTER),
    errors=(RunNotFound, BadCursor, UnknownFormat, TooManyStreams),
)
async def stream_run(request: ApiRequest) -> EventStream | Response:
    """Watch a run, or resume an interrupted stream. 204 if the run has ended and nothing follows the cursor."""
    cursor = request.cursor()
    format_ = request.format()
    queued = _own_queued(request)
    if queued is not None:
        return _stream_queued(request, queued, format_)
    run = await request.run()
    viewer = request.runtime.stream_viewer(run.ref, format_)
    if not run.live and (cursor.seq, -cursor.k) >= (run.last_seq, 0):
        return Response(status_code=204)
    if cursor.seq > run.last_seq:
        raise BadCursor(f"the log ends at {run.last_seq}: this cursor is from another one", path="after")
    if cursor.seq < run.first_seq:
        cursor = cursor._replace(seq=run.first_seq - 1, k=0)
    viewer.__enter__()
    viewer.start(cursor, only_run=True)
    first = None
    if not run.live and cursor.seq >= run.first_seq:
        first = await _first_batch(viewer)
        if first is None:
            return Response(status_code=204)
    headers = {"x-run-id": run.run_id, "x-session-id": run.ref.session_id}
    return EventStream(request, viewer, headers, first=first)


async def _first_batch(viewer: Viewer) -> FrameBatch | None:
    """Return the first frames of a viewer; None if it has none, and an empty batch if the store is slow.

    If the viewer returns no frames or raises an error, it is exited.
    """
    timer = asyncio.get_running_loop().call_later(FIRST_BATCH_SECONDS, partial(viewer.wake, in_read=True))
    batch = None
    try:
        batch = await viewer.next()
    finally:
        timer.cancel()
        if batch is None:
            viewer.__exit__()
    return batch


def _own_queued(request: ApiRequest) -> QueuedRun | None:
    """Return the caller's queued run that the path names, None if there is none."""
    queued = request.runtime.queues.find(request.path("run_id"))
    return queued if queued is not None and queued.ref.owner == request.user.user_id else None


def _stream_queued(request: ApiRequest, queued: QueuedRun, format_: Format) -> EventStream:
    """Return the stream of a queued run. It sends heartbeats until the run begins, and then the events of the run."""
    runtime = request.runtime
    viewer = runtime.stream_viewer(queued.ref, format_).__enter__()

    async def begin() -> None:
        await asyncio.wait({queued.settled})
        run = await runtime.store.run(queued.run_id)
        if run is None:
            raise queued.refusal_for_duplicate()
        viewer.start(Cursor(run.first_seq - 1), only_run=True)

    headers = {"x-run-id": queued.run_id, "x-session-id": queued.ref.session_id}
    return EventStream(request, viewer, headers, StartingRun(runtime.spawn(begin()), queued))


@router.route(
    "POST", "/runs/{run_id}/cancel", "Stop a run", body=CancelBody, body_required=False, errors=(RunNotFound,)
)
async def cancel_run(request: ApiRequest) -> StateView:
    """Stop a run. Its log is not deleted. A run that has ended is not changed."""
    body = CancelBody()
    if request.has_body:
        body = validate(await request.json(), CancelBody)
    reason = body.reason[:MAX_REASON] or "stopped by the user"
    run_id = request.path("run_id")
    await request.count_signal(run_id)
    if _own_queued(request) is not None:
        await request.runtime.control.cancel(run_id, reason, request.user.user_id)
        return StateView(run_id=run_id, state="cancelled")
    live = request.runtime.control.live_run(run_id)
    is_own = live is not None and live.run.ref.owner == request.user.user_id
    if is_own or (await request.run()).live:  # the Stop of an own run does not wait for a read of the store
        await request.runtime.control.cancel(run_id, reason, request.user.user_id)
    if live is not None:
        await asyncio.wait({live.task}, timeout=STOP_SECONDS)
    return StateView(run_id=run_id, state=(await request.run()).state)


@router.route(
    "GET", "/runs/{run_id}/approvals/{approval_id}", "Read an approval", errors=(RunNotFound, ApprovalNotFound)
)
async def get_approval(request: ApiRequest) -> DecidedView:
    """Read an approval with its complete arguments, and its decision if it is decided."""
    run, store = await request.run(), request.runtime.store
    requested, resolution = await request.runtime.control.approval(run, request.path("approval_id"))
    resolved = None if resolution is None else resolution.event
    id_ = requested.approval_id
    args = await stored_value(store, run, "approval", id_, requested.args, requested.truncated, requested.size)
    edited = StoredValue(None, is_complete=True)
    if resolved is not None:
        edited = await stored_value(store, run, "edited", id_, resolved.args, resolved.truncated, resolved.size)
    return DecidedView(
        approval_id=id_,
        call_id=requested.call_id,
        name=requested.name,
        args=args.value,
        edited_args=edited.value,
        truncated=not (args.is_complete and edited.is_complete),
        decisions=requested.decisions,
        expires_at=requested.expires_at,
        state=resolved.decision if resolved else "requested",
        reason=resolved.reason if resolved else "",
        by=resolved.by if resolved else "",
        decided_at=resolution.at if resolution else None,
    )


@router.route(
    "POST",
    "/runs/{run_id}/approvals/{approval_id}",
    "Decide on an approval",
    body=DecisionBody,
    errors=(RunNotFound, ApprovalNotFound, AlreadyDecided, AgentNotServed, ApprovalExpired, NotOffered),
)
async def decide(request: ApiRequest) -> DecisionView:
    """Decide on an approval: approve, edit (with the new `args`) or reject (with a `reason`)."""
    await request.count_signal(request.path("run_id"))
    body = await request.body(DecisionBody)
    if body.decision == "edit" and body.args is None:
        raise InvalidBody("to edit, send the new args", path="args")
    decision = Decide(
        request.path("run_id"),
        request.path("approval_id"),
        body.decision,
        body.args,
        body.reason[:MAX_REASON],
        request.user.user_id,
    )
    await request.runtime.control.decide(await request.run(), decision)
    return DecisionView(state=body.decision)


@router.route(
    "GET",
    "/runs/{run_id}/tools/{call_id:text}",
    "Read a complete tool result",
    response=ToolView,
    query=(RAW,),
    errors=(RunNotFound, ToolNotFound),
)
async def get_tool(request: ApiRequest) -> ToolView | Response:
    """Read a tool call with its complete arguments and result.

    A call id that cannot be in a path, such as `..`, is sent as `~` and its Base64 (URL-safe, of UTF-8, not padded).
    """
    run, store = await request.run(), request.runtime.store
    call_id = call_id_of_segment(request.path("call_id"))
    found = await read_call(store, run, call_id)
    if found is None:
        raise ToolNotFound(f"run {run.run_id} has no tool call {call_id[:100]!r}")
    if request.query("raw") == "1":
        kept = await complete_body(store, run, "result", call_id, found.result_cut, found.size)
        if kept is not None:
            return _raw(kept.body, kept.media_type != "application/json")
    result = await complete_value(store, run, "result", call_id, found.result, found.result_cut)
    text = text_of(result) if result is not None else ""
    if request.query("raw") == "1":
        return _raw(text, isinstance(result, str))
    return ToolView(
        output=found.output,
        call_id=call_id,
        name=found.name,
        args=await complete_value(store, run, "args", call_id, found.args, found.args_cut),
        result=result,
        error=found.error,
        result_seen=found.result_seen,
        media_type="text/plain" if isinstance(result, str) else "application/json",
        size=max(len(text.encode()), found.size),
    )


@router.route("GET", "/runs/{run_id}/input", "Read the complete question", response="text/plain", errors=(RunNotFound,))
async def get_input(request: ApiRequest) -> Response:
    """Read the complete question of a run."""
    run = await request.run()
    started = await input_of(request.runtime.store, run)
    if started is None:
        raise NotFound(f"run {run.run_id} has not begun")
    complete = await complete_value(request.runtime.store, run, "input", "", started.input, started.truncated)
    return _raw(text_of(complete), is_text=True)


@router.route(
    "GET",
    "/runs/{run_id}/answer",
    "Read the complete answer",
    response="text/plain",
    query=(TEXT,),
    errors=(RunNotFound,),
)
async def get_answer(request: ApiRequest) -> Response:
    """Read the complete answer of a run as the agent returned it, as text or JSON. With `text=1`, only its text."""
    run = await request.run()
    answer = await read_answer(request.runtime.store, run)
    if answer is None:
        raise NotFound(f"run {run.run_id} has no answer")
    if request.query("text") == "1":
        return _raw(text_of((await complete_answer(request.runtime.store, run, answer)).content), is_text=True)
    given: JsonValue = answer.content if answer.data is None else answer.data
    complete = await complete_value(request.runtime.store, run, "content", "", given, answer.truncated)
    return _raw(text_of(complete), isinstance(complete, str))


@router.route(
    "GET",
    "/artifacts/{artifact_id}",
    "Download a file",
    response="application/octet-stream",
    errors=(ArtifactNotFound,),
)
async def get_artifact(request: ApiRequest) -> Response:
    """Download a file that an agent created or a user sent. Browsers do not display it as a page of this server."""
    artifact = await request.runtime.store.artifact(request.path("artifact_id"))
    if artifact is None or artifact.ref.owner != request.user.user_id:
        raise ArtifactNotFound(f"there is no artifact {request.path('artifact_id')[:100]!r}")
    headers = {
        "content-disposition": f"attachment; filename*=UTF-8''{quote(artifact.name, safe='')}",
        "content-security-policy": "sandbox",
        "cache-control": "private, max-age=600",  # artifacts never change
    }
    media_type = artifact.media_type if artifact.media_type.isascii() and artifact.media_type.isprintable() else ""
    return Response(artifact.body, media_type=media_type or "application/octet-stream", headers=headers)


def _raw(text: str | bytes, is_text: bool) -> Response:
    body = text.encode() if isinstance(text, str) else text
    media_type = "text/plain" if is_text else "application/json"
    headers = {"content-length": str(len(body))}
    return StreamingResponse(_chunks(body), media_type=media_type, headers=headers)


async def _chunks(body: bytes) -> AsyncIterator[memoryview]:
    """Yield a body in chunks, without copying it. Other tasks run between the chunks."""
    view = memoryview(body)
    for start in range(0, len(body), CHUNK):
        yield view[start : start + CHUNK]
        await asyncio.sleep(0)
