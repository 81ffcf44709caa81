"""What goes wrong in smolagents, in a sentence: it wraps errors in advice for the model, which people need not read."""

from limelight.sources.values import safe_text

WRAPPERS = {"AgentGenerationError", "AgentToolExecutionError"}
"""Errors that say more about their cause than they add."""


def told(error: BaseException) -> str:
    """The message of an error, or of what caused it."""
    cause = error.__cause__
    if type(error).__name__ in WRAPPERS and cause is not None:
        return told(cause) if type(cause).__name__ in WRAPPERS else f"{type(cause).__name__}: {safe_text(cause)}"
    message = getattr(error, "message", None)
    return message if isinstance(message, str) and message else safe_text(error) or type(error).__name__


def named(error: BaseException) -> str:
    """The same with the name of the error, which often says more: `KeyError: 'size'`."""
    return told(error) if type(error).__name__ in WRAPPERS else f"{type(error).__name__}: {told(error)}"
