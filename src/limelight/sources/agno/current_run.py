"""Which run of Agno's the code that asks works for. Known by Agno's names, read off the stack.

Agno hands a tool its run only if the tool asks for it, and keeps it in no context. What a tool does in tasks or threads
of its own is therefore not known to be a member's.
"""

import sys
from types import FrameType
from typing import Any

RUNS_A_TOOL = ("FunctionCall.execute", "FunctionCall.aexecute")
DRIVES_A_TOOL = "process_async_generator"
"""What Agno starts for a tool that is an async generator, once `aexecute` has given it."""


def run_id_here() -> str:
    """Agno's id of the run whose tool calls this; "" outside of tools."""
    frame: FrameType | None = sys._getframe(1)  # pyright: ignore[reportPrivateUsage]
    while frame is not None:
        if (call := _call_in(frame)) is not None:
            return str(getattr(getattr(call.function, "_run_context", None), "run_id", None) or "")
        frame = frame.f_back
    return ""


def _call_in(frame: FrameType) -> Any:
    code = frame.f_code
    if code.co_qualname in RUNS_A_TOOL:
        return frame.f_locals.get("self")
    return frame.f_locals.get("function_call") if code.co_name == DRIVES_A_TOOL else None
