"""The routes of runs: state, stream, Stop, decisions, complete values and files."""

import asyncio
from collections.abc import Mapping
from functools import partial
from typing import TypeVar
from urllib.parse import quote

import msgspec
from starlette.responses import Response

from limelight.dialects.base import text_of
from limelight.errors import (
    AgentNotServed,
    AlreadyDecided,
    ApprovalExpired,
    ApprovalNotFound,
    ArtifactNotFound,
    BadCursor,
    NotFound,
    NotOffered,
    RunNotFound,
    ToolNotFound,
    TooManyStreams,
    UnknownFormat,
)
from limelight.events import JsonValue
from limelight.links import call_id_of_segment, link
from limelight.models import Cursor, Run
from limelight.runs.hub import FrameBatch
from limelight.runs.queries import (
    LargeValue,
    StoredValue,
    ToolCall,
    complete_answer,
    complete_body,
    complete_value,
    input_of,
    is_unparsed,
    large_value,
    read_answer,
    read_call,
    stored_value,
)
from limelight.runs.queue import QueuedRun
from limelight.runs.viewer import Format, Viewer
from limelight.server.downloads import artifact_content, download, json_content, object_contents, raw_content
from limelight.server.endpoint import AFTER, FORMAT, ApiRequest, Param, Router, check_cursor, decision_of
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
from limelight.stores.base import Store

V = TypeVar("V", bound=msgspec.Struct)
STOP_SECONDS = 2
"""Maximum time that a Stop request waits for the end of the run before it is answered."""
FIRST_BATCH_SECONDS = 1
"""Maximum time that a request for the stream of an ended run waits for the first frames before its response begins."""
ZERO_OR_ONE = {"type": "string", "enum": ["0", "1"]}
TEXT = Param("text", "1: the text of a structured answer, without its title and sources", ZERO_OR_ONE)
RAW = Param("raw", "1: the result itself instead of JSON about it", ZERO_OR_ONE)
router = Router("Runs")


@router.route("GET", "/runs/{run_id}", "Read a run", errors=(RunNotFound,))
async def get_run(request: ApiRequest) -> RunView:
    """Read the state of a run (queued, running, waiting, finished, failed or cancelled) and its open approvals."""
    queued = request.queued_run()
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
            question=approval.question,
            answer_schema=approval.answer_schema,
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
    queued = request.queued_run()
    if queued is not None:
        return _stream_queued(request, queued, format_)
    run = await request.run()
    viewer = request.runtime.stream_viewer(run.ref, format_)
    if not run.live and cursor.sort_key >= Cursor(run.last_seq).sort_key:
        return Response(status_code=204)
    check_cursor(cursor, run.last_seq)
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
    run_id = request.path("run_id")
    await request.count_signal(run_id)
    body = await request.body(CancelBody) if request.has_body else CancelBody()
    reason = body.reason[:MAX_REASON] or "stopped by the user"
    if request.queued_run() is not None:
        await request.runtime.control.cancel(run_id, reason, request.user.user_id)
        return StateView(run_id=run_id, state="cancelled")
    live = request.runtime.control.live_run(run_id)
    is_own = live is not None and request.owns(live.run.ref)
    if is_own or (await request.run()).live:  # the Stop of an own run does not wait for a read of the store
        await request.runtime.control.cancel(run_id, reason, request.user.user_id)
    if live is not None:
        await asyncio.wait({live.task}, timeout=STOP_SECONDS)
    return StateView(run_id=run_id, state=(await request.run()).state)


@router.route(
    "GET",
    "/runs/{run_id}/approvals/{approval_id}",
    "Read an approval",
    response=DecidedView,
    errors=(RunNotFound, ApprovalNotFound),
)
async def get_approval(request: ApiRequest) -> DecidedView | Response:
    """Read an approval with its complete arguments, and its decision if it is decided."""
    run, store = await request.run(), request.runtime.store
    requested, resolution = await request.runtime.control.approval(run, request.path("approval_id"))
    resolved = None if resolution is None else resolution.event
    id_ = requested.approval_id
    args = await _stored_or_large(store, run, "approval", id_, requested.args, requested.truncated, requested.size)
    edited: StoredValue | LargeValue = StoredValue(None, is_complete=True)
    if resolved is not None:
        edited = await _stored_or_large(store, run, "edited", id_, resolved.args, resolved.truncated, resolved.size)
    view = DecidedView(
        approval_id=id_,
        call_id=requested.call_id,
        name=requested.name,
        args=_in_memory(args),
        edited_args=_in_memory(edited),
        truncated=not (args.is_complete and edited.is_complete),
        decisions=requested.decisions,
        question=requested.question,
        answer_schema=requested.answer_schema,
        expires_at=requested.expires_at,
        state=resolved.decision if resolved else "requested",
        reason=resolved.reason if resolved else "",
        by=resolved.by if resolved else "",
        answered=resolved is not None and resolved.answered,
        decided_at=resolution.at if resolution else None,
    )
    return await _with_large(request, run, view, {"args": args, "edited_args": edited})


@router.route(
    "POST",
    "/runs/{run_id}/approvals/{approval_id}",
    "Decide on an approval",
    body=DecisionBody,
    errors=(RunNotFound, ApprovalNotFound, AlreadyDecided, AgentNotServed, ApprovalExpired, NotOffered),
)
async def decide(request: ApiRequest) -> DecisionView:
    """Decide on an approval: approve, edit (new `args`), reject (with a `reason`) or respond (with an `answer`)."""
    await request.count_signal(request.path("run_id"))
    body = await request.body(DecisionBody)
    decision = decision_of(
        request.path("run_id"), request.path("approval_id"), body, body.reason[:MAX_REASON], request.user.user_id
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
    is_large=True,
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
    large = await large_value(store, run, "result", call_id, found.result_cut, found.size)
    if request.query("raw") == "1":
        return await _raw_result(request, run, found, large)
    args = await _stored_or_large(store, run, "args", call_id, found.args, found.args_cut, found.args_size)
    result = large or await stored_value(store, run, "result", call_id, found.result, found.result_cut, found.size)
    is_text, size = await _text_and_size(store, run, result)
    view = ToolView(
        output=found.output,
        call_id=call_id,
        name=found.name,
        args=_in_memory(args),
        result=_in_memory(result),
        error=found.error,
        outcome=found.outcome,
        result_seen=found.result_seen,
        media_type="text/plain" if is_text else "application/json",
        size=max(size, found.size),
    )
    return await _with_large(request, run, view, {"args": args, "result": result})


async def _raw_result(request: ApiRequest, run: Run, call: ToolCall, large: LargeValue | None) -> Response:
    if large is not None:
        return await _raw_download(request, run, large)
    store = request.runtime.store
    kept = await complete_body(store, run, "result", call.call_id, call.result_cut, call.size)
    if kept is not None:
        return _raw(kept.body, kept.media_type != "application/json")
    result = await complete_value(store, run, "result", call.call_id, call.result, call.result_cut)
    return _raw(text_of(result) if result is not None else "", isinstance(result, str))


async def _text_and_size(store: Store, run: Run, result: StoredValue | LargeValue) -> tuple[bool, int]:
    """Return whether a tool result is a text, and its size in bytes as text."""
    if isinstance(result, LargeValue):
        return result.is_text, await raw_content(store, run, result).size()
    text = "" if result.value is None else text_of(result.value)
    return isinstance(result.value, str), len(text.encode())


@router.route("GET", "/runs/{run_id}/input", "Read the complete question", response="text/plain", errors=(RunNotFound,))
async def get_input(request: ApiRequest) -> Response:
    """Read the complete question of a run."""
    run = await request.run()
    started = await input_of(request.runtime.store, run)
    if started is None:
        raise NotFound(f"run {run.run_id} has not begun")
    store, size = request.runtime.store, started.size
    value = await _stored_or_large(store, run, "input", "", started.input, started.truncated, size)
    if isinstance(value, LargeValue):
        return await _raw_download(request, run, value)
    return _raw(text_of(value.value), is_text=True)


@router.route(
    "GET",
    "/runs/{run_id}/answer",
    "Read the complete answer",
    response="text/plain",
    query=(TEXT,),
    errors=(RunNotFound,),
    is_large=True,
)
async def get_answer(request: ApiRequest) -> Response:
    """Read the complete answer of a run as the agent returned it, as text or JSON. With `text=1`, only its text."""
    run = await request.run()
    answer = await read_answer(request.runtime.store, run)
    if answer is None:
        raise NotFound(f"run {run.run_id} has no answer")
    store = request.runtime.store
    large = await large_value(store, run, "content", "", answer.truncated, answer.size)
    only_text = request.query("text") == "1"
    if large is not None and (not only_text or is_unparsed(large)):
        return await _raw_download(request, run, large)
    if only_text:
        return _raw(text_of((await complete_answer(store, run, answer)).content), is_text=True)
    given: JsonValue = answer.content if answer.data is None else answer.data
    complete = await complete_value(store, run, "content", "", given, answer.truncated)
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
    store = request.runtime.store
    artifact = await store.artifact_info(request.path("artifact_id"))
    if artifact is None or not request.owns(artifact.ref):
        raise ArtifactNotFound(f"there is no artifact {request.path('artifact_id')[:100]!r}")
    headers = {
        "content-disposition": f"attachment; filename*=UTF-8''{quote(artifact.name, safe='')}",
        "content-security-policy": "sandbox",
        "cache-control": "private, max-age=600",  # artifacts never change
    }
    media_type = artifact.media_type if artifact.media_type.isascii() and artifact.media_type.isprintable() else ""
    contents = [artifact_content(store, artifact)]
    return await download(contents, media_type or "application/octet-stream", request.runtime.metrics, headers)


async def _stored_or_large(
    store: Store, run: Run, field: str, id_: str, inline: JsonValue, is_preview: bool, size: int
) -> StoredValue | LargeValue:
    """Return a complete value of a run; if it is large, only a LargeValue, whose content can be read in parts."""
    large = await large_value(store, run, field, id_, is_preview, size)
    return large or await stored_value(store, run, field, id_, inline, is_preview, size)


def _in_memory(value: StoredValue | LargeValue) -> JsonValue:
    """Return a value that is in memory, None for one that is still in the store: `_with_large` reads it later."""
    return None if isinstance(value, LargeValue) else value.value


async def _with_large(
    request: ApiRequest, run: Run, view: V, values: Mapping[str, StoredValue | LargeValue]
) -> V | Response:
    """Return a JSON view unchanged or, if some of `values` are large, a response that reads these while it is sent."""
    store, metrics = request.runtime.store, request.runtime.metrics
    large = {name: json_content(store, run, v) for name, v in values.items() if isinstance(v, LargeValue)}
    return await download(object_contents(view, large), "application/json", metrics) if large else view


async def _raw_download(request: ApiRequest, run: Run, value: LargeValue) -> Response:
    contents = [raw_content(request.runtime.store, run, value)]
    return await download(contents, "text/plain" if value.is_text else "application/json", request.runtime.metrics)


def _raw(text: str | bytes, is_text: bool) -> Response:
    return Response(text, media_type="text/plain" if is_text else "application/json")
