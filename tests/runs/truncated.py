"""Events after their truncation for the log."""

from typing import Any

from limelight.events import (
    AnyEvent,
    JsonValue,
    ToolFinished,
)
from limelight.runs.truncation import (
    Fitted,
    fit,
)

RESULT_MAX = 1_000_000


def fitted(event: AnyEvent, result_max: int = RESULT_MAX) -> Fitted:
    return fit(event, "run_1", result_max)


def only(event: AnyEvent) -> Any:
    """The one event that comes out, with nothing beside it."""
    found = fitted(event)
    assert found.results == []
    assert len(found.events) == 1
    return found.events[0]


def result_of(value: Any) -> JsonValue:
    return only(ToolFinished(call_id="c", result=value)).result
