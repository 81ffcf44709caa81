"""Traces as text: a line for each span, indented below its parent."""

from collections.abc import Sequence

from limelight.events import AnyEvent, Record
from limelight.tracing.run_trace import RunTrace
from limelight.tracing.span import Span

RUN_ID = "run_1"
SESSION_ID = "s"
STARTED_AT = 1_700_000_000_000


def as_records(events: Sequence[AnyEvent]) -> list[Record]:
    """Return Records of the events, ten milliseconds apart."""
    return [
        Record(number, RUN_ID, STARTED_AT + 10 * (number - 1), event) for number, event in enumerate(events, start=1)
    ]


def spans_of(events: Sequence[AnyEvent], *, content: bool = False) -> list[Span]:
    """Return the spans of a run whose Records are fed together."""
    return RunTrace(RUN_ID, SESSION_ID, content=content).feed(as_records(events))


def trace_lines(spans: Sequence[Span]) -> list[str]:
    """Return lines as `  execute_tool search 20-50 ! tool_error`, with times in milliseconds of the run."""
    known = {span.span_id for span in spans}
    roots = [span for span in spans if span.parent_id not in known]
    return [line for span in sorted(roots, key=_start) for line in _lines(span, spans, 0)]


def _lines(span: Span, spans: Sequence[Span], depth: int) -> list[str]:
    start, end = (at // 1_000_000 - STARTED_AT for at in (span.start_ns, span.end_ns))
    error = f" ! {span.attributes['error.type']}" if span.failed else ""
    inside = sorted((other for other in spans if other.parent_id == span.span_id), key=_start)
    event_lines = [f"{'  ' * (depth + 1)}* {event.name.removeprefix('limelight.')}" for event in span.events]
    line = f"{'  ' * depth}{span.name} {start}-{end}{error}"
    return [line, *event_lines, *(inner for other in inside for inner in _lines(other, spans, depth + 1))]


def _start(span: Span) -> int:
    return span.start_ns
