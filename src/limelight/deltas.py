"""Deltas and how neighbours are joined: what lets a reader who fell behind get less and still get everything.

Pure. The compact form of the log groups by `delta_key`; streams that catch up send what `join` makes.
"""

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import msgspec

from limelight.events import PlanDelta, ReasoningDelta, Record, TextDelta, ToolArgsDelta, ToolOutputDelta

Delta = TextDelta | ReasoningDelta | PlanDelta | ToolArgsDelta | ToolOutputDelta
DELTA_TYPES = (TextDelta, ReasoningDelta, PlanDelta, ToolArgsDelta, ToolOutputDelta)
"""The same for `isinstance`, which is faster with a tuple."""

MAX_DELTA = 16 * 1024
"""The most bytes that a delta's text may take as JSON; a larger one is split, and joining stops there."""
QUOTES = 2
"""How much of that the quotes take."""


class Joined(NamedTuple):
    """A Record that stands for its parts."""

    parts: list[Record]
    record: Record

    @property
    def first_seq(self) -> int:
        return self.parts[0].seq


def delta_key(event: Delta) -> tuple[Any, ...]:
    """Deltas with the same key are pieces of one text."""
    match event:
        case TextDelta() | ReasoningDelta():
            return (type(event), event.agent_id, event.message_id)
        case PlanDelta():
            return (PlanDelta, event.agent_id, event.update)
        case ToolArgsDelta():
            return (ToolArgsDelta, event.agent_id, event.call_id)
        case ToolOutputDelta():
            return (ToolOutputDelta, event.agent_id, event.call_id, event.stream)


def join(records: Iterable[Record]) -> Iterator[Joined]:
    """Join neighbouring deltas of one text. A joined Record has the seq and time of its last one."""
    group: list[Record] = []
    texts: list[str] = []
    key: tuple[Any, ...] = ()
    size = 0
    for record in records:
        event = record.event
        if not isinstance(event, DELTA_TYPES):
            if group:
                yield _joined(group, texts)
                group = []
            yield Joined([record], record)
            continue
        event_key, event_size = delta_key(event), json_size(event.text) - QUOTES
        full = QUOTES + size + event_size > MAX_DELTA
        if group and (full or event_key != key or record.run_id != group[0].run_id):
            yield _joined(group, texts)
            group = []
        if not group:
            group, texts, key, size = [], [], event_key, 0
        group.append(record)
        texts.append(event.text)
        size += event_size
    if group:
        yield _joined(group, texts)


def _joined(group: list[Record], texts: list[str]) -> Joined:
    last = group[-1]
    if len(group) == 1:
        return Joined(group, last)
    event = msgspec.structs.replace(last.event, text="".join(texts))
    return Joined(group, Record(last.seq, last.run_id, last.at, event))


def json_size(text: str) -> int:
    """How many bytes a text takes inside a JSON string, quotes included."""
    return len(msgspec.json.encode(text))
