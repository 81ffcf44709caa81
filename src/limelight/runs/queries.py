"""Reads what clients request about a run from its log and the results table: input, tool calls and answer."""

from collections.abc import AsyncIterator
from typing import Any, NamedTuple

import msgspec

from limelight.events import (
    AnyEvent,
    FinalAnswer,
    JsonValue,
    Outcome,
    Record,
    RunStarted,
    TextDelta,
    ToolFinished,
    ToolOutputDelta,
    ToolReady,
    ToolStarted,
)
from limelight.models import Result, ResultInfo, Run
from limelight.runs.truncation import JSON, preview_of, result_key
from limelight.stores.base import Store
from limelight.structured_answers import MAX_PARSED, with_parts

BATCH = 512
LARGE_VALUE = 256 * 1024
"""Size in bytes above which a stored value is not read at once, but in parts while it is sent."""
MAX_CHARACTER_BYTES = 4
"""Maximum number of bytes of a character in UTF-8."""
TAIL_RECORDS = 64
"""Number of Records at the end of a run in which `read_answer` searches first."""


class ToolCall(msgspec.Struct, kw_only=True):
    """A tool call in the log. If `args_cut` or `result_cut` is True, `args` or `result` is only a preview.

    `args_size` and `size` are then the sizes of the complete arguments and the complete result.
    """

    call_id: str
    name: str
    agent_id: str = ""
    args: Any = None
    result: JsonValue = None
    error: str | None = None
    outcome: Outcome = ""
    result_seen: bool = True
    duration_ms: int | None = None
    size: int = 0
    args_size: int = 0
    args_cut: bool = False
    result_cut: bool = False
    printed: list[str] = []
    """The texts of the output deltas, in order."""

    @property
    def output(self) -> str:
        return "".join(self.printed)


class RunSummary(msgspec.Struct, kw_only=True):
    """The tool calls and the answer of a run, collected from its Records."""

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
        _apply_to_calls(calls, record.event)
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
            _apply_to_calls(summary.calls, event)
    summary.text = "".join(texts)
    return summary


def _apply_to_calls(calls: dict[str, ToolCall], event: AnyEvent) -> None:
    match event:
        case ToolStarted():
            calls[event.call_id] = ToolCall(
                call_id=event.call_id,
                name=event.name,
                agent_id=event.agent_id,
                args=event.args,
                args_cut=event.truncated,
                args_size=event.size,
            )
        case ToolReady() if event.call_id in calls:
            call = calls[event.call_id]
            call.args, call.args_cut, call.args_size = event.args, event.truncated, event.size
        case ToolOutputDelta() if event.call_id in calls:
            calls[event.call_id].printed.append(event.text)
        case ToolFinished() if event.call_id in calls:
            call = calls[event.call_id]
            call.result, call.error, call.duration_ms = event.result, event.error, event.duration_ms
            call.result_cut, call.size = event.truncated, event.size
            call.outcome, call.result_seen = event.outcome, event.result_seen
        case _:
            pass


class StoredValue(NamedTuple):
    """An input, an answer, arguments or a result of a run. If it is not complete, `value` is its beginning as text."""

    value: JsonValue
    is_complete: bool


async def stored_value(
    store: Store, run: Run, field: str, call_id: str, inline: JsonValue, is_preview: bool, size: int = 0
) -> StoredValue:
    """Return the stored value of an event's field, of which `inline` is only a preview if `is_preview`.

    The results table has up to `limits.result_bytes` of a value. `size` is the size of the complete value, if known.
    """
    kept = await store.result(run.run_id, result_key(field, call_id)) if is_preview else None
    if kept is None:
        return StoredValue(inline, not is_preview)
    text = kept.body.decode("utf-8", "replace")
    if kept.media_type != "application/json":
        return StoredValue(text, len(kept.body) >= size)
    try:
        return StoredValue(msgspec.json.decode(kept.body), is_complete=True)
    except msgspec.DecodeError:  # the value was cut at `result_max`, so it is not valid JSON
        return StoredValue(text, is_complete=False)


async def complete_value(
    store: Store, run: Run, field: str, call_id: str, inline: JsonValue, is_preview: bool
) -> JsonValue:
    """Return the complete value of an event's field, of which `inline` is only a preview if `is_preview`.

    A value of which only the beginning is stored is returned as text.
    """
    return (await stored_value(store, run, field, call_id, inline, is_preview)).value


class LargeValue(NamedTuple):
    """A value in the results table that is too large to be read at once.

    If only its beginning is stored, it is treated as a text, which may end inside of a character.
    """

    info: ResultInfo
    is_complete: bool

    @property
    def is_text(self) -> bool:
        return self.info.media_type != JSON or not self.is_complete


async def large_value(
    store: Store, run: Run, field: str, call_id: str, is_preview: bool, size: int
) -> LargeValue | None:
    """Return a value of an event that is too large to be read at once; None if it is not large.

    `is_preview`: whether the event has only a preview of the value. `size` is the size of the complete value, of which
    only the beginning may be stored.
    """
    info = await store.result_info(run, result_key(field, call_id)) if is_preview else None
    if info is None or info.size <= LARGE_VALUE:
        return None
    return LargeValue(info, is_complete=info.size >= size)


def is_unparsed(answer: LargeValue) -> bool:
    """Whether a large answer is plain text in any case, because it is too long to be parsed as a structured answer."""
    return answer.is_text and answer.info.size > MAX_CHARACTER_BYTES * MAX_PARSED


async def complete_answer(store: Store, run: Run, answer: FinalAnswer) -> FinalAnswer:
    """Return an answer with its complete content and sources, from the results table if the log has only a part."""
    if not answer.truncated:
        return answer
    content = await complete_value(store, run, "content", "", answer.content, answer.truncated)
    return _completed(answer, content)


def _completed(answer: FinalAnswer, content: JsonValue) -> FinalAnswer:
    """Return a truncated answer with its complete content, and with the sources for which its event had no room.

    `content` is the content as the agent gave it. If the event has the beginning of this content, and a title or
    sources, then the agent gave these beside the content, which is therefore literal.
    """
    answer = msgspec.structs.replace(answer, truncated=False, size=0, result_url="")
    is_literal = isinstance(content, str) and answer.content == preview_of(content)
    if is_literal and (answer.title or answer.sources):
        return with_parts(msgspec.structs.replace(answer, content=content))
    parts = with_parts(FinalAnswer(content=content))
    if answer.sources == parts.sources[: len(answer.sources)]:
        answer = msgspec.structs.replace(answer, sources=parts.sources, source_links=parts.source_links)
    if not isinstance(content, str):
        return with_parts(msgspec.structs.replace(answer, content=content))
    return msgspec.structs.replace(answer, title=answer.title or parts.title, content=parts.content, data=parts.data)


async def complete_body(store: Store, run: Run, field: str, call_id: str, is_preview: bool, size: int) -> Result | None:
    """Return the stored bytes of a value of an event, which can be sent to a client without decoding.

    Return None if the value is in the event itself (`is_preview` is False), or if not all `size` bytes are stored.
    """
    kept = await store.result(run.run_id, result_key(field, call_id)) if is_preview else None
    return kept if kept is not None and len(kept.body) == size else None


async def input_of(store: Store, run: Run) -> RunStarted | None:
    """Return the `run_started` event of a run, which contains the user's input; None if it was deleted."""
    records = await store.records(run.ref, after=run.first_seq - 1, limit=1)
    event = records[0].event if records else None
    return event if isinstance(event, RunStarted) else None
