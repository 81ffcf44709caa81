"""A finished span, as the exporter gets it. Pure; no word of OpenTelemetry's own code."""

import hashlib
from collections.abc import Mapping

import msgspec

Attributes = Mapping[str, str | int | bool]
NS = 1_000_000
"""Nanoseconds in a millisecond: the log counts the latter, spans the former."""


class SpanEvent(msgspec.Struct, frozen=True):
    """Something that happened while a span was open."""

    name: str
    at_ns: int
    attributes: Attributes = {}


class Span(msgspec.Struct, frozen=True, kw_only=True):
    """All spans are of the kind `internal`: what they tell of happened in this process."""

    name: str
    trace_id: int
    span_id: int
    parent_id: int | None
    start_ns: int
    end_ns: int
    attributes: Attributes
    events: tuple[SpanEvent, ...] = ()
    failed: bool = False
    message: str = ""
    """What went wrong, in words; only where content may be told."""
    parent_is_remote: bool = False
    """Whether its parent is a span of whoever asked for the run."""
    is_sampled: bool = True
    """False if whoever asked for the run has decided that this trace is not kept."""


def trace_id_of(run_id: str) -> int:
    """The same whenever it is asked for, so that a run which goes on after a restart goes on in its trace."""
    return _number(run_id, 16)


def span_id_of(run_id: str, seq: int) -> int:
    """By the Record with which it began, which has its number for ever."""
    return _number(f"{run_id}:{seq}", 8)


def _number(text: str, length: int) -> int:
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:length]) or 1
