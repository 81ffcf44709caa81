"""Functions that tools of any framework can call: `current` for the current run, `status` for status lines.

    from limelight import status

    def compile_notes(topic: str) -> str:
        status(f"Compiling notes on {topic} …")
        ...

Outside of a run `current()` is None and `status` does nothing, so that the same tools work without Limelight.
"""

from limelight.events import Status
from limelight.sources.base import CURRENT, CURRENT_AGENT_ID, Context


def current() -> Context | None:
    """Return the context of the current run: its session, user, workspace and approvals; None outside of a run."""
    return CURRENT.get()


def status(text: str) -> None:
    """Emit a status line for the agent whose tool calls this function. Works in async tools and in threads."""
    context = CURRENT.get()
    if context is not None and not context.cancelled:
        context.emit(Status(agent_id=CURRENT_AGENT_ID.get()(), text=text))
