"""Makes the error message of a failed run from an exception. Pure.

It adds the address of a server that did not answer, because client libraries of models say only "Connection error.".
"""

from limelight.errors import LimelightError
from limelight.redaction.rules import strip_credentials


def error_message(error: BaseException) -> str:
    """Return the message of an error. If a server did not respond to a request, the message includes its address."""
    text = error.detail if isinstance(error, LimelightError) else f"{type(error).__name__}: {error}"
    address = unanswered_address(error)
    return f"{text.rstrip('. ')}: {address}" if address and address not in text else text


def unanswered_address(error: BaseException) -> str:
    """Return the URL of the request that got no response, from an error or one of its causes; "" if there is none."""
    seen: list[BaseException] = []
    at: BaseException | None = error
    while at is not None and at not in seen:
        seen.append(at)
        if _attribute(at, "response") is not None:  # there was a response, with an error status
            return ""
        address = _address(at)
        if address:
            return address
        at = at.__cause__ or at.__context__
    return ""


def _address(error: BaseException) -> str:
    """Return the URL in the `request` attribute of an error, without credentials; "" if there is none."""
    return strip_credentials(str(_attribute(_attribute(error, "request"), "url") or ""))


def _attribute(value: object, name: str) -> object:
    """Return an attribute of a value; None if it is missing or raises, as some properties of httpx do."""
    try:
        return getattr(value, name, None)
    except Exception:
        return None
