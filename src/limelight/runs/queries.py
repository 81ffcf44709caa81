"""Reading a run back from its log: its tool calls, its answer, as values instead of a stream."""

from collections.abc import AsyncIterator
from typing import Any

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

BATCH = 512
LAST_WORDS = 64


class ToolCall(msgspec.Struct, kw_only=True):
    """One call with all that the log says about it. Values that were cut there carry their key."""

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
    """What it said while it ran, in pieces."""

    @property
    def output(self) -> str:
        return "".join(self.printed)


class RunStory(msgspec.Struct, kw_only=True):
    """What a run said and did."""

    calls: dict[str, ToolCall]
    answer: FinalAnswer | None = None
    text: str = ""
    """The main agent's last message, for runs that have no answer because they failed or were stopped."""


async def records_of(store: Store, run: Run) -> AsyncIterator[Record]:
    """All Records of a run, in order."""
    after = run.first_seq - 1
    while records := await store.records(run.ref, after=after, limit=BATCH):
        for record in records:
            if record.run_id != run.run_id:
                return
            yield record
        after = records[-1].seq


async def read_call(store: Store, run: Run, call_id: str) -> ToolCall | None:
    """One call of a run, without a look at the rest of it. None if there is no such call."""
    calls: dict[str, ToolCall] = {}
    for record in await store.records_naming(run, call_id):
        _fold_call(calls, record.event)
    return calls.get(call_id)


async def read_answer(store: Store, run: Run) -> FinalAnswer | None:
    """The answer, which is among a run's last words; one that is not is looked for in all of it."""
    near = max(run.first_seq, run.last_seq - LAST_WORDS)
    for record in reversed(await store.records(run.ref, after=near - 1, limit=LAST_WORDS + 1)):
        if isinstance(record.event, FinalAnswer) and record.run_id == run.run_id:
            return record.event
    return (await read_story(store, run)).answer if near > run.first_seq else None


async def read_story(store: Store, run: Run) -> RunStory:
    """Fold a run's log."""
    story = RunStory(calls={})
    message_id, texts = "", list[str]()
    async for record in records_of(store, run):
        event = record.event
        if isinstance(event, TextDelta) and not event.agent_id:
            if event.message_id != message_id:
                message_id, texts = event.message_id, []
            texts.append(event.text)
        elif isinstance(event, FinalAnswer):
            story.answer = event
        else:
            _fold_call(story.calls, event)
    story.text = "".join(texts)
    return story


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


async def whole_value(store: Store, run: Run, field: str, call_id: str, inline: JsonValue, cut: bool) -> JsonValue:
    """A value as the agent gave it: the one in the log, or the whole one if that was cut."""
    kept = await store.result(run.run_id, result_key(field, call_id)) if cut else None
    if kept is None:
        return inline
    if kept.media_type != "application/json":
        return kept.body.decode("utf-8", "replace")
    try:
        return msgspec.json.decode(kept.body)
    except msgspec.DecodeError:  # over `result_max`: what is left is text
        return kept.body.decode("utf-8", "replace")


async def whole_body(store: Store, run: Run, field: str, call_id: str, cut: bool, size: int) -> Result | None:
    """The bytes of a value that was cut in the log, if all `size` of them are kept: a large one is not to be read."""
    kept = await store.result(run.run_id, result_key(field, call_id)) if cut else None
    return kept if kept is not None and len(kept.body) == size else None


async def input_of(store: Store, run: Run) -> RunStarted | None:
    """How the run was asked."""
    records = await store.records(run.ref, after=run.first_seq - 1, limit=1)
    event = records[0].event if records else None
    return event if isinstance(event, RunStarted) else None
