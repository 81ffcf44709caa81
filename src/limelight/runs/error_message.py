"""The message of `run_failed` for an exception: its text, and the address of a server that did not answer. Pure.

Clients of models say "Connection error." and do not name the address.
"""

from limelight.errors import LimelightError
from limelight.redaction.rules import strip_credentials


def error_message(error: BaseException) -> str:
    """The error in one line, with the address if a request got no answer."""
    text = error.detail if isinstance(error, LimelightError) else f"{type(error).__name__}: {error}"
    address = unanswered_address(error)
    return f"{text.rstrip('. ')}: {address}" if address and address not in text else text


def unanswered_address(error: BaseException) -> str:
    """The address of a request without an answer, from the error or from one of its causes; "" if there is none."""
    seen: list[BaseException] = []
    at: BaseException | None = error
    while at is not None and at not in seen:
        seen.append(at)
        if _attribute(at, "response") is not None:  # it was answered, with an error
            return ""
        address = _address(at)
        if address:
            return address
        at = at.__cause__ or at.__context__
    return ""


def _address(error: BaseException) -> str:
    """The address of the request that an error names."""
    return strip_credentials(str(_attribute(_attribute(error, "request"), "url") or ""))


def _attribute(value: object, name: str) -> object:
    """An attribute, None if there is none. Any class may raise here; httpx does."""
    try:
        return getattr(value, name, None)
    except Exception:
        return None
