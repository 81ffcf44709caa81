"""A trace as a drawing that a person can compare: a line for each span, under its parent."""

from collections.abc import Sequence

from limelight.events import AnyEvent, Record
from limelight.tracing.run_trace import RunTrace
from limelight.tracing.span import Span

RUN_ID = "run_1"
SESSION_ID = "s"
BEGUN = 1_700_000_000_000


def recorded(events: Sequence[AnyEvent]) -> list[Record]:
    """Each event ten milliseconds after the one before."""
    return [Record(number, RUN_ID, BEGUN + 10 * (number - 1), event) for number, event in enumerate(events, start=1)]


def traced(events: Sequence[AnyEvent], *, content: bool = False) -> list[Span]:
    """The spans of a run that reached the log all at once."""
    return RunTrace(RUN_ID, SESSION_ID, content=content).feed(recorded(events))


def drawn(spans: Sequence[Span]) -> list[str]:
    """`  execute_tool search 20-50 ! tool_error`: deeper ones are inside, times are milliseconds of the run."""
    known = {span.span_id for span in spans}
    roots = [span for span in spans if span.parent_id not in known]
    return [line for span in sorted(roots, key=_start) for line in _lines(span, spans, 0)]


def _lines(span: Span, spans: Sequence[Span], depth: int) -> list[str]:
    start, end = (at // 1_000_000 - BEGUN for at in (span.start_ns, span.end_ns))
    error = f" ! {span.attributes['error.type']}" if span.failed else ""
    inside = sorted((other for other in spans if other.parent_id == span.span_id), key=_start)
    noted = [f"{'  ' * (depth + 1)}* {event.name.removeprefix('limelight.')}" for event in span.events]
    line = f"{'  ' * depth}{span.name} {start}-{end}{error}"
    return [line, *noted, *(one for other in inside for one in _lines(other, spans, depth + 1))]


def _start(span: Span) -> int:
    return span.start_ns
