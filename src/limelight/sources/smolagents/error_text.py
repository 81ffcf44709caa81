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
    said = message if isinstance(message, str) and message else safe_text(error)
    if not isinstance(error, Exception):  # what exits says little: `SystemExit: 1`
        said = f"{type(error).__name__}: {said}" if said else ""
    return said or type(error).__name__


def named(error: BaseException) -> str:
    """The same with the name of the error, which often says more: `KeyError: 'size'`."""
    says_it = type(error).__name__ in WRAPPERS or not isinstance(error, Exception)
    return told(error) if says_it else f"{type(error).__name__}: {told(error)}"
