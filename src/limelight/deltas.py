"""Joins neighbouring deltas of one text, so that a viewer that catches up gets fewer frames. Pure.

Stores that compress the log group deltas by `delta_key`.
"""

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import msgspec

from limelight.events import PlanDelta, ReasoningDelta, Record, TextDelta, ToolArgsDelta, ToolOutputDelta

Delta = TextDelta | ReasoningDelta | PlanDelta | ToolArgsDelta | ToolOutputDelta
DELTA_TYPES = (TextDelta, ReasoningDelta, PlanDelta, ToolArgsDelta, ToolOutputDelta)
"""The types of Delta as a tuple, because `isinstance` is faster with a tuple."""

MAX_DELTA = 16 * 1024
"""Size limit of a delta's text, in bytes of JSON: larger deltas are split, and joined ones do not exceed it."""
QUOTES = 2
"""Bytes of the two quotes around a JSON string, which count towards MAX_DELTA."""


class Joined(NamedTuple):
    """A Record, and the Records (`parts`) whose deltas it joins; only itself if none were joined."""

    parts: list[Record]
    record: Record

    @property
    def first_seq(self) -> int:
        return self.parts[0].seq


def delta_key(event: Delta) -> tuple[Any, ...]:
    """Return a key that identifies the text to which a delta belongs; equal for all deltas of that text."""
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
    """Yield Records, with neighbouring deltas of one text joined. A joined Record has the last `seq` and time."""
    group: list[Record] = []
    texts: list[str] = []
    key: tuple[Any, ...] = ()
    size = 0
    for record in records:
        event = record.event
        if not isinstance(event, DELTA_TYPES):
            if group:
                yield _merge(group, texts)
                group = []
            yield Joined([record], record)
            continue
        event_key, event_size = delta_key(event), json_size(event.text) - QUOTES
        full = QUOTES + size + event_size > MAX_DELTA
        if group and (full or event_key != key or record.run_id != group[0].run_id):
            yield _merge(group, texts)
            group = []
        if not group:
            group, texts, key, size = [], [], event_key, 0
        group.append(record)
        texts.append(event.text)
        size += event_size
    if group:
        yield _merge(group, texts)


def _merge(group: list[Record], texts: list[str]) -> Joined:
    last = group[-1]
    if len(group) == 1:
        return Joined(group, last)
    event = msgspec.structs.replace(last.event, text="".join(texts))
    return Joined(group, Record(last.seq, last.run_id, last.at, event))


def json_size(text: str) -> int:
    """Return the size in bytes of a text as a JSON string, including its quotes."""
    return len(msgspec.json.encode(text))
