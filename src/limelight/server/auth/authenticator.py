"""Who somebody is, by the key or the token that they send. What may be done with it, the routes say."""

import hmac
import logging
from collections.abc import Callable
from typing import TypeVar

import msgspec

from limelight.auth.identity import (
    ALL_SCOPES,
    MAX_USER_ID,
    SYSTEM,
    Identity,
    Scope,
    TokenVerifier,
    looks_like_jwt,
)
from limelight.auth.key_file import Keyring
from limelight.errors import BadRequest, Forbidden, SetupError, StoreUnavailable, Unauthorized
from limelight.models import LOCAL_OWNER
from limelight.sources.base import User

log = logging.getLogger(__name__)
T = TypeVar("T")


class Caller(msgspec.Struct, frozen=True):
    """Somebody who asks: for whom, and what they may."""

    user: User
    scopes: frozenset[Scope]
    is_named: bool = False
    """Whether a header says who the user is."""

    def may(self, scope: Scope) -> bool:
        return scope in self.scopes

    def needs(self, scope: Scope) -> None:
        """Raises Forbidden if that is not allowed."""
        if scope not in self.scopes:
            has = ", ".join(sorted(self.scopes)) or "none"
            raise Forbidden(f"this needs a key with the scope {scope!r}; the scopes of yours: {has}")

    def check_names(self, user_id: str, path: str) -> None:
        """Raises BadRequest if they name the server's own user, who has no limits, and are somebody else."""
        if user_id == LOCAL_OWNER != self.user.user_id:
            told = f"the user {LOCAL_OWNER!r} is the server's own: only LIMELIGHT_API_KEY speaks for them"
            raise BadRequest(told, path=path)


NOBODY = Caller(User(LOCAL_OWNER), frozenset())
LOCAL = Caller(User(LOCAL_OWNER), ALL_SCOPES - {"on-behalf-of"})
"""Whoever uses a server that needs no key: it is theirs, but they cannot say that they are somebody else."""


class Gate:
    """The keys of one server: that of its settings, those of its data folder, and the tokens of an issuer."""

    def __init__(self, api_key: str, keyring: Keyring, issuer: TokenVerifier | None = None) -> None:
        if not (api_key.isascii() and api_key.isprintable()) or " " in api_key:
            raise SetupError("auth.api_key (LIMELIGHT_API_KEY) is sent in a header: no spaces, and nothing but ASCII")
        self._api_key = api_key.encode()
        self._keyring = keyring
        self._issuer = issuer
        self._trouble = ""
        """Why the keyring could not be read when it was last asked."""

    @property
    def is_open(self) -> bool:
        """True while there is no key at all, and nobody who issues tokens."""
        return not self._api_key and self._issuer is None and not self._asked(self._keyring.has_any)

    async def caller(self, token: str) -> Caller | None:
        """None for what is no key, or no longer one. Raises Unauthorized, with the reason, for a token like that."""
        if self._api_key and hmac.compare_digest(token.encode(), self._api_key):
            return Caller(User(LOCAL_OWNER), ALL_SCOPES)
        if self._issuer is not None and looks_like_jwt(token):
            return _caller_of(await self._issuer.verify(token))
        key = self._asked(lambda: self._keyring.find(token))
        if key is not None and key.user == SYSTEM:  # made before that was refused
            raise Unauthorized(f"the user {SYSTEM!r} is the server itself: make a key with another name")
        return None if key is None else Caller(User(key.user), frozenset(key.scopes))

    def _asked(self, question: Callable[[], T]) -> T:
        """What the keyring answers. Keys that cannot be read open nothing, and where they are is not told."""
        try:
            answer = question()
        except SetupError as error:
            if error.detail != self._trouble:  # once, and not with each request
                log.error("%s", error.detail)
            self._trouble = error.detail
            raise StoreUnavailable("the keys of this server cannot be read; its log says why") from error
        self._trouble = ""
        return answer


def _caller_of(identity: Identity) -> Caller:
    if identity.user_id == LOCAL_OWNER:  # nobody becomes this machine by choosing a name elsewhere
        raise Unauthorized(f"this token is not accepted: the user {LOCAL_OWNER!r} is the server's own")
    name = identity.name.encode(
        errors="ignore"
    ).decode()  # JSON may hold halves of characters, which nobody can send on
    return Caller(User(identity.user_id, name[:MAX_USER_ID]), identity.scopes)
