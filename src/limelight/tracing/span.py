"""Spans of a run, their ids, and the `traceparent` header with the parent span of a client.

Pure, and independent of OpenTelemetry's classes.
"""

import hashlib
import re
from typing import NamedTuple

import msgspec

Attributes = dict[str, str | int | bool]
NS_PER_MS = 1_000_000
"""Nanoseconds per millisecond: times in the log are in milliseconds, those of spans in nanoseconds."""

TRACEPARENT = "traceparent"
"""The name of the header that contains the client's span, by the standard W3C Trace Context."""
_TRACEPARENT_FORMAT = re.compile(
    r"(?P<version>[0-9a-f]{2})-(?P<trace>[0-9a-f]{32})-(?P<span>[0-9a-f]{16})-(?P<flags>[0-9a-f]{2})(?P<more>-.*)?"
)
_SAMPLED = 1


class SpanEvent(msgspec.Struct, frozen=True):
    """An event in a span, such as the decision on an approval."""

    name: str
    at_ns: int
    attributes: Attributes = {}


class TokenUsage(msgspec.Struct):
    """The token counts of a span: the sums over the requests to models that were reported for it."""

    model: str = ""
    input_tokens: int = 0
    output_tokens: int = 0
    is_known: bool = False

    def add(self, input_tokens: int, output_tokens: int, model: str = "") -> None:
        self.model = model or self.model
        self.input_tokens += input_tokens
        self.output_tokens += output_tokens
        self.is_known = True

    @property
    def attributes(self) -> Attributes:
        if not self.is_known:
            return {}
        return {"gen_ai.usage.input_tokens": self.input_tokens, "gen_ai.usage.output_tokens": self.output_tokens}


class Span(msgspec.Struct, kw_only=True):
    """The span of a run, a sub-agent, a step or a tool call. It is open while `end_ns` is 0."""

    name: str
    trace_id: int
    span_id: int
    parent_id: int | None
    start_ns: int
    end_ns: int = 0
    attributes: Attributes
    events: list[SpanEvent] = []
    usage: TokenUsage = msgspec.field(default_factory=TokenUsage)
    failed: bool = False
    message: str = ""
    """The error message; "" without an error, or if spans must not contain content."""
    parent_is_remote: bool = False
    """Whether the parent is a span of the client that requested the run."""
    is_sampled: bool = True
    """False if the client has decided not to sample the trace."""


class RemoteParent(NamedTuple):
    """The span of a client that is the parent of a run."""

    trace_id: int
    span_id: int
    is_sampled: bool


def parse_traceparent(header: str) -> RemoteParent | None:
    """Parse a `traceparent` header. Return None if it is empty or invalid; the standard says to ignore it then."""
    found = _TRACEPARENT_FORMAT.fullmatch(header.strip(" \t"))
    if found is None or found["version"] == "ff" or (found["version"] == "00" and found["more"]):
        return None
    trace_id, span_id = int(found["trace"], 16), int(found["span"], 16)
    if not trace_id or not span_id:
        return None
    return RemoteParent(trace_id, span_id, bool(int(found["flags"], 16) & _SAMPLED))


def normalize_traceparent(header: str | None) -> str:
    """Return a `traceparent` header in the format of version 00, "" if it is missing or invalid."""
    parent = parse_traceparent(header or "")
    return f"00-{parent.trace_id:032x}-{parent.span_id:016x}-{int(parent.is_sampled):02x}" if parent else ""


def trace_id_of(run_id: str) -> int:
    """Return the trace id of a run, derived from its run id, so that a run that resumes after a restart keeps it."""
    return _hash(run_id, 16)


def span_id_of(run_id: str, seq: int) -> int:
    """Return the id of the span that begins with a Record, derived from the run id and the Record's number."""
    return _hash(f"{run_id}:{seq}", 8)


def _hash(text: str, length: int) -> int:
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:length]) or 1
