"""Runs: their state, their stream, Stop, decisions, whole values, files."""

import asyncio
from collections.abc import AsyncIterator
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
from limelight.links import link
from limelight.models import Decide, Run
from limelight.runs.queries import input_of, read_answer, read_call, whole_body, whole_value
from limelight.runs.queue import QueuedRun
from limelight.runs.viewer import Format
from limelight.server.endpoint import Call, Endpoint, Param, shaped
from limelight.server.request_schemas import MAX_REASON, CancelBody, DecisionBody
from limelight.server.routes.params import AFTER, FORMAT
from limelight.server.routes.refused_stream import refusal_frames
from limelight.server.sse import EventStream
from limelight.server.views import ApprovalView, DecidedView, DecisionView, RunView, StateView, ToolView, run_view

STOP_SECONDS = 2
PIECE = 256 * 1024
"""Bytes of a large value that are sent at once."""
RAW = Param("raw", "1: the result itself instead of JSON about it", {"type": "string", "enum": ["0", "1"]})


async def get_run(call: Call) -> RunView:
    """A run's state: queued, running, waiting, finished, failed or cancelled, with the approvals it waits for."""
    waiting = _own_waiting(call)
    if waiting is not None:
        return RunView(
            run_id=waiting.run_id,
            session_id=waiting.ref.session_id,
            agent=waiting.request.agent.name,
            request_id=waiting.request.request_id,
            state="queued",
            started_at=None,
            ended_at=None,
            error=None,
            approvals=[],
        )
    run = await call.run()
    return run_view(run, await _open_approvals(call, run))


async def _open_approvals(call: Call, run: Run) -> list[ApprovalView]:
    return [
        ApprovalView(
            approval_id=request.approval_id,
            call_id=request.call_id,
            name=request.name,
            args=request.args,
            decisions=request.decisions,
            expires_at=request.expires_at,
            truncated=request.truncated,
            size=request.size,
            result_url=link(call.root, request.result_url),
        )
        for request in await call.parts.control.open_approvals(run)
    ]


async def stream_run(call: Call) -> EventStream | Response:
    """Watch a run, or go on where a stream was cut. 204 if it has ended and the cursor is at its end."""
    cursor = call.cursor()
    format_ = call.format()
    waiting = _own_waiting(call)
    if waiting is not None:
        return _stream_when_begun(call, waiting, format_)
    run = await call.run()
    viewer = call.parts.stream_viewer(run.ref, format_)
    if not run.live and (cursor.seq, -cursor.k) >= (run.last_seq, 0):
        return Response(status_code=204)
    if cursor.seq > run.last_seq:
        raise BadCursor(f"the log ends at {run.last_seq}: this cursor is from another one", path="after")
    if cursor.seq < run.first_seq:
        cursor = cursor._replace(seq=run.first_seq - 1, k=0)
    viewer.__enter__()
    viewer.start(cursor, only_run=True)
    headers = {"x-run-id": run.run_id, "x-session-id": run.ref.session_id}
    return EventStream(viewer, call.parts.pulse, headers, call.still_holds)


def _own_waiting(call: Call) -> QueuedRun | None:
    """The request of the path that still waits for its turn, if it is the caller's."""
    waiting = call.parts.queues.find(call.path("run_id"))
    return waiting if waiting is not None and waiting.ref.owner == call.user.user_id else None


def _stream_when_begun(call: Call, waiting: QueuedRun, format_: Format) -> EventStream:
    """Signs of life until the run begins, then the run."""
    parts = call.parts
    viewer = parts.stream_viewer(waiting.ref, format_).__enter__()

    async def begin() -> None:
        await asyncio.wait({waiting.settled})
        run = await parts.store.run(waiting.run_id)
        if run is None:
            raise waiting.refusal_for_duplicate()
        viewer.start(Cursor(run.first_seq - 1), only_run=True)

    headers = {"x-run-id": waiting.run_id, "x-session-id": waiting.ref.session_id}
    return EventStream(
        viewer,
        parts.pulse,
        headers,
        call.still_holds,
        parts.spawn(begin()),
        lambda error: refusal_frames(format_, waiting, error),
    )


async def cancel_run(call: Call) -> StateView:
    """Stop a run. What it did so far is kept. Harmless if it has ended already."""
    body = CancelBody()
    if call.has_body:
        body = shaped(await call.raw_json(), CancelBody)
    reason = body.reason[:MAX_REASON] or "stopped by the user"
    run_id = call.path("run_id")
    await call.count_signal(run_id)
    if _own_waiting(call) is not None:
        await call.parts.control.cancel(run_id, reason, call.user.user_id)
        return StateView(run_id=run_id, state="cancelled")
    run = await call.run()
    live = call.parts.control.live_run(run_id)
    if run.live:
        await call.parts.control.cancel(run_id, reason, call.user.user_id)
    if live is not None:
        await asyncio.wait({live.task}, timeout=STOP_SECONDS)
    return StateView(run_id=run_id, state=(await call.run()).state)


async def decide(call: Call) -> DecisionView:
    """Answer an approval: approve, edit (with the new `args`) or reject (with a `reason`)."""
    await call.count_signal(call.path("run_id"))
    body = await call.body(DecisionBody)
    if body.decision == "edit" and body.args is None:
        raise InvalidBody("to edit, send the new args", path="args")
    decision = Decide(
        call.path("run_id"),
        call.path("approval_id"),
        body.decision,
        body.args,
        body.reason[:MAX_REASON],
        call.user.user_id,
    )
    await call.parts.control.decide(await call.run(), decision)
    return DecisionView(state=body.decision)


async def get_approval(call: Call) -> DecidedView:
    """One approval with its whole arguments, and the answer if there is one."""
    run, store = await call.run(), call.parts.store
    requested, answered = await call.parts.control.approval(run, call.path("approval_id"))
    resolved = None if answered is None else answered.event
    id_ = requested.approval_id
    edited = resolved.args if resolved is not None else None
    return DecidedView(
        approval_id=id_,
        call_id=requested.call_id,
        name=requested.name,
        args=await whole_value(store, run, "approval", id_, requested.args, requested.truncated),
        edited_args=await whole_value(store, run, "edited", id_, edited, resolved is not None and resolved.truncated),
        decisions=requested.decisions,
        expires_at=requested.expires_at,
        state=resolved.decision if resolved else "requested",
        reason=resolved.reason if resolved else "",
        by=resolved.by if resolved else "",
        decided_at=answered.at if answered else None,
    )


async def get_tool(call: Call) -> ToolView | Response:
    """One tool call with its whole arguments and result, however large."""
    run, store = await call.run(), call.parts.store
    call_id = call.path("call_id")
    found = await read_call(store, run, call_id)
    if found is None:
        raise ToolNotFound(f"run {run.run_id} has no tool call {call_id[:100]!r}")
    if call.query("raw") == "1":
        kept = await whole_body(store, run, "result", call_id, found.result_cut, found.size)
        if kept is not None:
            return _raw(kept.body, kept.media_type != "application/json")
    result = await whole_value(store, run, "result", call_id, found.result, found.result_cut)
    text = text_of(result) if result is not None else ""
    if call.query("raw") == "1":
        return _raw(text, isinstance(result, str))
    return ToolView(
        output=found.output,
        call_id=call_id,
        name=found.name,
        args=await whole_value(store, run, "args", call_id, found.args, found.args_cut),
        result=result,
        error=found.error,
        result_seen=found.result_seen,
        media_type="text/plain" if isinstance(result, str) else "application/json",
        size=max(len(text.encode()), found.size),
    )


async def get_input(call: Call) -> Response:
    """The whole question that a run was asked."""
    run = await call.run()
    started = await input_of(call.parts.store, run)
    if started is None:
        raise NotFound(f"run {run.run_id} has not begun")
    whole = await whole_value(call.parts.store, run, "input", "", started.input, started.truncated)
    return _raw(text_of(whole), is_text=True)


async def get_answer(call: Call) -> Response:
    """The whole answer of a run, as text or, if it is structured, as JSON."""
    run = await call.run()
    answer = await read_answer(call.parts.store, run)
    if answer is None:
        raise NotFound(f"run {run.run_id} has no answer")
    whole = await whole_value(call.parts.store, run, "content", "", answer.content, answer.truncated)
    return _raw(text_of(whole), isinstance(whole, str))


async def get_artifact(call: Call) -> Response:
    """A file that an agent made or a user sent. It is offered for download, never shown as a page of this server."""
    artifact = await call.parts.store.artifact(call.path("artifact_id"))
    if artifact is None or artifact.ref.owner != call.user.user_id:
        raise ArtifactNotFound(f"there is no artifact {call.path('artifact_id')[:100]!r}")
    headers = {
        "content-disposition": f"attachment; filename*=UTF-8''{quote(artifact.name, safe='')}",
        "content-security-policy": "sandbox",
        "cache-control": "private, max-age=600",  # it never changes, and a page shows it often
    }
    media_type = artifact.media_type if artifact.media_type.isascii() and artifact.media_type.isprintable() else ""
    return Response(artifact.body, media_type=media_type or "application/octet-stream", headers=headers)


def _raw(text: str | bytes, is_text: bool) -> Response:
    body = text.encode() if isinstance(text, str) else text
    media_type = "text/plain" if is_text else "application/json"
    headers = {"content-length": str(len(body))}
    return StreamingResponse(_pieces(body), media_type=media_type, headers=headers)


async def _pieces(body: bytes) -> AsyncIterator[memoryview]:
    """So that others get their turn while a large one is sent, and what the reader does not take is not copied."""
    whole = memoryview(body)
    for start in range(0, len(body), PIECE):
        yield whole[start : start + PIECE]
        await asyncio.sleep(0)


ENDPOINTS = (
    Endpoint(
        method="GET",
        path="/runs/{run_id}",
        summary="Read a run",
        call=get_run,
        reply=RunView,
        errors=(RunNotFound,),
        tag="Runs",
    ),
    Endpoint(
        method="GET",
        path="/runs/{run_id}/stream",
        summary="Watch or resume a run",
        call=stream_run,
        reply="text/event-stream",
        query=(FORMAT, AFTER),
        errors=(RunNotFound, BadCursor, UnknownFormat, TooManyStreams),
        tag="Runs",
    ),
    Endpoint(
        method="POST",
        path="/runs/{run_id}/cancel",
        summary="Stop a run",
        call=cancel_run,
        reply=StateView,
        body=CancelBody,
        body_required=False,
        errors=(RunNotFound,),
        tag="Runs",
    ),
    Endpoint(
        method="GET",
        path="/runs/{run_id}/approvals/{approval_id}",
        summary="Read an approval",
        call=get_approval,
        reply=DecidedView,
        errors=(RunNotFound, ApprovalNotFound),
        tag="Runs",
    ),
    Endpoint(
        method="POST",
        path="/runs/{run_id}/approvals/{approval_id}",
        summary="Decide on an approval",
        call=decide,
        reply=DecisionView,
        body=DecisionBody,
        errors=(RunNotFound, ApprovalNotFound, AlreadyDecided, AgentNotServed, ApprovalExpired, NotOffered),
        tag="Runs",
    ),
    Endpoint(
        method="GET",
        path="/runs/{run_id}/tools/{call_id:path}",
        summary="Read a whole tool result",
        call=get_tool,
        reply=ToolView,
        query=(RAW,),
        errors=(RunNotFound, ToolNotFound),
        tag="Runs",
    ),
    Endpoint(
        method="GET",
        path="/runs/{run_id}/input",
        summary="Read the whole question",
        call=get_input,
        reply="text/plain",
        errors=(RunNotFound,),
        tag="Runs",
    ),
    Endpoint(
        method="GET",
        path="/runs/{run_id}/answer",
        summary="Read the whole answer",
        call=get_answer,
        reply="text/plain",
        errors=(RunNotFound,),
        tag="Runs",
    ),
    Endpoint(
        method="GET",
        path="/artifacts/{artifact_id}",
        summary="Get a file",
        call=get_artifact,
        reply="application/octet-stream",
        errors=(ArtifactNotFound,),
        tag="Runs",
    ),
)
