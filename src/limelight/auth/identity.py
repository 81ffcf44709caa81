"""Identities of callers: scopes, user ids, and the interface of token verifiers. Pure.

This module does not import `jwt`, which needs an optional package.
"""

from typing import Literal, NamedTuple, Protocol, get_args

Scope = Literal["use", "admin", "on-behalf-of"]
"""A permission of a key or token."""
SCOPES: tuple[Scope, ...] = get_args(Scope)
ALL_SCOPES = frozenset(SCOPES)
SCOPE_DESCRIPTIONS: dict[Scope, str] = {
    "use": "run agents, and see and change what is one's own",
    "admin": "list users and their sessions, and delete these; read the metrics",
    "on-behalf-of": "name the user for whom a request is, as Open WebUI's pipe does",
}
MAX_USER_ID = 256
SYSTEM = "system"
"""The user id of the server itself. In the log, it marks decisions that no person has made."""


class Identity(NamedTuple):
    """The user and the scopes of a caller, as proved by a token."""

    user_id: str
    name: str
    scopes: frozenset[Scope]


class TokenVerifier(Protocol):
    """The interface of objects that verify bearer tokens."""

    async def verify(self, token: str) -> Identity:
        """Verify a bearer token and return the user and scopes of the caller.

        Raises Unauthorized for an invalid token, and IssuerUnavailable if the token cannot be checked.
        """
        ...


def looks_like_jwt(text: str) -> bool:
    """Whether a text consists of three parts with dots between them, as a JWT does."""
    return text.count(".") == 2


def user_id_error(user_id: str) -> str:
    """Return why a user id is invalid, "" if it is valid.

    Invalid ids are refused, not corrected: a corrected id could be the id of another user.
    """
    if not 1 <= len(user_id) <= MAX_USER_ID:
        return f"a user id has at most {MAX_USER_ID} characters, and at least one"
    if user_id != user_id.strip():
        return "a user id has no spaces around it"
    if not user_id.isprintable() or "\ufffd" in user_id:
        return "a user id is text that can be printed, percent-encoded as UTF-8 in a header"
    if user_id == SYSTEM:
        return f"the user {SYSTEM!r} is the server itself: choose another name"
    return ""
