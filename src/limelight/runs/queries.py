"""Queries about a run: its input, its tool calls and its answer, read from the log and the results table."""

from collections.abc import AsyncIterator
from typing import Any, NamedTuple

import msgspec

from limelight.events import (
    AnyEvent,
    FinalAnswer,
    JsonValue,
    Record,
    RunStarted,
    TextDelta,
    ToolFinished,
    ToolOutputDelta,
    ToolReady,
    ToolStarted,
)
from limelight.models import Result, Run
from limelight.runs.truncation import result_key
from limelight.stores.base import Store
from limelight.structured_answers import with_parts

BATCH = 512
TAIL_RECORDS = 64
"""Number of Records at the end of a run in which its answer is searched first."""


class ToolCall(msgspec.Struct, kw_only=True):
    """A tool call in the log. If `args_cut` or `result_cut` is True, `args` or `result` is only a preview."""

    call_id: str
    name: str
    agent_id: str = ""
    args: Any = None
    result: JsonValue = None
    error: str | None = None
    result_seen: bool = True
    duration_ms: int | None = None
    size: int = 0
    args_cut: bool = False
    result_cut: bool = False
    printed: list[str] = []
    """The texts of the output deltas, in order."""

    @property
    def output(self) -> str:
        return "".join(self.printed)


class RunSummary(msgspec.Struct, kw_only=True):
    """The tool calls and the answer of a run."""

    calls: dict[str, ToolCall]
    answer: FinalAnswer | None = None
    text: str = ""
    """The last text message of the main agent. It replaces the answer of a run that failed or was stopped."""


async def records_of(store: Store, run: Run) -> AsyncIterator[Record]:
    """Yield all Records of a run, in order."""
    after = run.first_seq - 1
    while records := await store.records(run.ref, after=after, limit=BATCH):
        for record in records:
            if record.run_id != run.run_id:
                return
            yield record
        after = records[-1].seq


async def read_call(store: Store, run: Run, call_id: str) -> ToolCall | None:
    """Return one tool call of a run, None if the run has no such call. Reads only the Records of the call."""
    calls: dict[str, ToolCall] = {}
    for record in await store.records_naming(run, call_id):
        _fold_call(calls, record.event)
    return calls.get(call_id)


async def read_answer(store: Store, run: Run) -> FinalAnswer | None:
    """Return the answer of a run, None if it has none. Searches the last Records first, then all of them."""
    near = max(run.first_seq, run.last_seq - TAIL_RECORDS)
    for record in reversed(await store.records(run.ref, after=near - 1, limit=TAIL_RECORDS + 1)):
        if isinstance(record.event, FinalAnswer) and record.run_id == run.run_id:
            return with_parts(record.event)
    return (await read_summary(store, run)).answer if near > run.first_seq else None


async def read_summary(store: Store, run: Run) -> RunSummary:
    """Return the tool calls and the answer of a run, read from all its Records."""
    summary = RunSummary(calls={})
    message_id, texts = "", list[str]()
    async for record in records_of(store, run):
        event = record.event
        if isinstance(event, TextDelta) and not event.agent_id:
            if event.message_id != message_id:
                message_id, texts = event.message_id, []
            texts.append(event.text)
        elif isinstance(event, FinalAnswer):
            summary.answer = with_parts(event)
        else:
            _fold_call(summary.calls, event)
    summary.text = "".join(texts)
    return summary


def _fold_call(calls: dict[str, ToolCall], event: AnyEvent) -> None:
    match event:
        case ToolStarted():
            calls[event.call_id] = ToolCall(
                call_id=event.call_id,
                name=event.name,
                agent_id=event.agent_id,
                args=event.args,
                args_cut=event.truncated,
            )
        case ToolReady() if event.call_id in calls:
            calls[event.call_id].args, calls[event.call_id].args_cut = event.args, event.truncated
        case ToolOutputDelta() if event.call_id in calls:
            calls[event.call_id].printed.append(event.text)
        case ToolFinished() if event.call_id in calls:
            call = calls[event.call_id]
            call.result, call.error, call.duration_ms = event.result, event.error, event.duration_ms
            call.result_cut, call.size, call.result_seen = event.truncated, event.size, event.result_seen
        case _:
            pass


class StoredValue(NamedTuple):
    """An input, an answer, arguments or a result of a run. If not complete, `value` is its beginning, as text."""

    value: JsonValue
    is_complete: bool


async def stored_value(
    store: Store, run: Run, field: str, call_id: str, inline: JsonValue, cut: bool, size: int = 0
) -> StoredValue:
    """Return a value of an event: `inline` or, if that is only a preview (`cut`), the value in the results table.

    The results table has up to `result_max` bytes of a value. `size` is the size of the complete value, if known.
    """
    kept = await store.result(run.run_id, result_key(field, call_id)) if cut else None
    if kept is None:
        return StoredValue(inline, not cut)
    text = kept.body.decode("utf-8", "replace")
    if kept.media_type != "application/json":
        return StoredValue(text, len(kept.body) >= size)
    try:
        return StoredValue(msgspec.json.decode(kept.body), is_complete=True)
    except msgspec.DecodeError:  # the value was cut at `result_max`, so it is not valid JSON
        return StoredValue(text, is_complete=False)


async def complete_value(store: Store, run: Run, field: str, call_id: str, inline: JsonValue, cut: bool) -> JsonValue:
    """Return a value of an event: `inline` or, if that is only a preview (`cut`), the value in the results table.

    A value that was cut at `result_max` is returned as text.
    """
    return (await stored_value(store, run, field, call_id, inline, cut)).value


async def complete_answer(store: Store, run: Run, answer: FinalAnswer) -> FinalAnswer:
    """Return an answer with all its content and sources; from the results table if the log has only a part."""
    if not answer.truncated:
        return with_parts(answer)
    content = await complete_value(store, run, "content", "", answer.content, answer.truncated)
    sources = with_parts(FinalAnswer(content=content)).sources or answer.sources
    return with_parts(msgspec.structs.replace(answer, content=content, sources=sources))


async def complete_body(store: Store, run: Run, field: str, call_id: str, cut: bool, size: int) -> Result | None:
    """Return the bytes of a value of an event from the results table, to send them to a client without decoding.

    Return None if the event itself has the value (`cut` is False), or if not all `size` bytes are stored.
    """
    kept = await store.result(run.run_id, result_key(field, call_id)) if cut else None
    return kept if kept is not None and len(kept.body) == size else None


async def input_of(store: Store, run: Run) -> RunStarted | None:
    """Return the `run_started` event of a run, which contains the user's input; None if it was deleted."""
    records = await store.records(run.ref, after=run.first_seq - 1, limit=1)
    event = records[0].event if records else None
    return event if isinstance(event, RunStarted) else None
