"""The header `traceparent` of W3C Trace Context: the span of a client in which a run was asked for. Pure."""

import re
from typing import NamedTuple

HEADER = "traceparent"
FORM = re.compile(
    r"(?P<version>[0-9a-f]{2})-(?P<trace>[0-9a-f]{32})-(?P<span>[0-9a-f]{16})-(?P<flags>[0-9a-f]{2})(?P<more>-.*)?"
)
SAMPLED = 1


class Parent(NamedTuple):
    """A span of somebody else."""

    trace_id: int
    span_id: int
    is_sampled: bool


def parent_in(header: str) -> Parent | None:
    """None if the header says nothing, or nothing that the standard allows: then it counts as not sent."""
    found = FORM.fullmatch(header.strip(" \t"))
    if found is None or found["version"] == "ff" or (found["version"] == "00" and found["more"]):
        return None
    trace_id, span_id = int(found["trace"], 16), int(found["span"], 16)
    if not trace_id or not span_id:
        return None
    return Parent(trace_id, span_id, bool(int(found["flags"], 16) & SAMPLED))


def usable(header: str | None) -> str:
    """The header in the one form that is kept; empty if it cannot be used."""
    parent = parent_in(header or "")
    return f"00-{parent.trace_id:032x}-{parent.span_id:016x}-{int(parent.is_sampled):02x}" if parent else ""
