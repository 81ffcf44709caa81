"""Whom a token stands for. Apart from `tokens`, which needs a library that only those have who use tokens."""

from typing import NamedTuple, Protocol

from limelight.auth.scopes import Scope


class Holder(NamedTuple):
    """Somebody with a token."""

    user_id: str
    name: str
    scopes: frozenset[Scope]


class Tokens(Protocol):
    """Who can read tokens."""

    async def holder(self, token: str) -> Holder:
        """Raises Unauthorized if the token does not hold, IssuerUnavailable if nobody can tell."""
        ...


def looks_like_token(text: str) -> bool:
    return text.count(".") == 2
