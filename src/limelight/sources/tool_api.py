"""For the tools of an agent, whatever its framework: the run that they are a part of, if they are in one.

    from limelight import status

    def compile_notes(topic: str) -> str:
        status(f"Compiling notes on {topic} …")
        ...

Outside of Limelight `current()` is None and `status` does nothing, so that the same tools work anywhere.
"""

from limelight.events import Status
from limelight.sources.base import CURRENT, SPEAKER, Context


def current() -> Context | None:
    """The context of this run: session, user, workspace, whether it was stopped, and a way to ask a person."""
    return CURRENT.get()


def status(text: str) -> None:
    """Say in one line what goes on, as the agent whose tool this is. Works in async tools and in threads."""
    context = CURRENT.get()
    if context is not None and not context.cancelled:
        context.emit(Status(agent_id=SPEAKER.get()(), text=text))
