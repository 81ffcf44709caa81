"""What an error says to the people who watch a run: its text, and who did not answer. Pure.

Clients of models say "Connection error." and keep the address to themselves. The engine calls `told` for `run_failed`.
"""

from limelight.addresses import without_secrets
from limelight.errors import LimelightError


def told(error: BaseException) -> str:
    """The error in one line, with the address if a request was not answered."""
    text = error.detail if isinstance(error, LimelightError) else f"{type(error).__name__}: {error}"
    address = unanswered(error)
    return f"{text.rstrip('. ')}: {address}" if address and address not in text else text


def unanswered(error: BaseException) -> str:
    """Where nobody answered; "" if it was not that. It stands in the error, or in one that led to it."""
    seen: list[BaseException] = []
    at: BaseException | None = error
    while at is not None and at not in seen:
        seen.append(at)
        if _part(at, "response") is not None:  # somebody did, though not what was hoped for
            return ""
        address = _address(at)
        if address:
            return address
        at = at.__cause__ or at.__context__
    return ""


def _address(error: BaseException) -> str:
    """Of the request that it tells of."""
    return without_secrets(str(_part(_part(error, "request"), "url") or ""))


def _part(value: object, name: str) -> object:
    """An attribute, if there is one; a strange class may do anything when it is asked, and httpx raises."""
    try:
        return getattr(value, name, None)
    except Exception:
        return None
