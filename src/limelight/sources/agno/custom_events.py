"""Events that a tool makes up for itself: what they say, and what Agno makes of them in the tool's result. Pure.

Agno appends the `str` of each such event to the result. That text is no result; it is taken out where it is found.
"""

import dataclasses
from copy import copy
from typing import Any, cast

import msgspec

from limelight.sources.values import json_value, safe_text

FRAME = frozenset(
    {"created_at", "event", "agent_id", "agent_name", "team_id", "team_name", "run_id", "parent_run_id", "session_id"}
    | {"workflow_id", "workflow_run_id", "step_id", "step_name", "step_index", "nested_depth", "tools", "tool_call_id"}
)
"""What all of Agno's events carry; the rest of a custom event is what its author put in."""


def custom_text(event: Any) -> str:
    """What a custom event says: its content, or else its own fields as JSON."""
    content: Any = getattr(event, "content", None)
    if isinstance(content, str) and content:
        return content
    own = cast("dict[str, Any]", vars(event))
    fields = {name: value for name, value in own.items() if name not in FRAME and value is not None}
    return msgspec.json.encode(json_value(fields)).decode() if fields else ""


def noises_of(event: Any) -> list[str]:
    """What Agno may have added to the result: it was made before the event was told to whom it belongs."""
    bare = copy(event)
    bare.tool_call_id = None
    blank = copy(event)
    for field in dataclasses.fields(event):
        if field.name in FRAME - {"event"} and field.default is not dataclasses.MISSING:
            setattr(blank, field.name, field.default)
    return list(dict.fromkeys([safe_text(blank), safe_text(bare)]))


def without_noise(result: Any, noises: list[str]) -> Any:
    if isinstance(result, str):
        for noise in noises:
            result = result.replace(noise, "", 1)
    return result
