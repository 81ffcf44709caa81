"""Who somebody is, by the key that they send. What may be done with it, the routes say."""

import hmac
import logging
from collections.abc import Callable
from typing import TypeVar

import msgspec

from limelight.access.keyring import Keyring
from limelight.access.scopes import ALL, Scope
from limelight.errors import Forbidden, SetupError, StoreUnavailable
from limelight.sources.base import User
from limelight.stores.base import LOCAL_OWNER

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


NOBODY = Caller(User(LOCAL_OWNER), frozenset())
LOCAL = Caller(User(LOCAL_OWNER), ALL - {"on-behalf-of"})
"""Whoever uses a server that needs no key: it is theirs, but they cannot say that they are somebody else."""


class Gate:
    """The keys of one server: that of its settings, and those of its data folder."""

    def __init__(self, api_key: str, keyring: Keyring) -> None:
        if not (api_key.isascii() and api_key.isprintable()) or " " in api_key:
            raise SetupError("auth.api_key (LIMELIGHT_API_KEY) is sent in a header: no spaces, and nothing but ASCII")
        self._api_key = api_key.encode()
        self._keyring = keyring

    @property
    def is_open(self) -> bool:
        """True while there is no key at all."""
        return not self._api_key and not self._asked(self._keyring.__bool__)

    def caller(self, token: str) -> Caller | None:
        """None for a token that is no key, or no longer one."""
        if self._api_key and hmac.compare_digest(token.encode(), self._api_key):
            return Caller(User(LOCAL_OWNER), ALL)
        key = self._asked(lambda: self._keyring.find(token))
        return None if key is None else Caller(User(key.user), frozenset(key.scopes))

    def _asked(self, question: Callable[[], T]) -> T:
        """What the keyring answers. Keys that cannot be read open nothing, and where they are is not told."""
        try:
            return question()
        except SetupError as error:
            log.error("%s", error.detail)
            raise StoreUnavailable("the keys of this server cannot be read; its log says why") from error
