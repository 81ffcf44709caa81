"""API keys, which have the form `lml_ID_SECRET`. The server stores the id and a hash of the secret.

A secret has 256 random bits, so a fast hash is enough: unlike a password, it cannot be found by guessing.
Pure except for the random numbers of `make_key`.
"""

import hashlib
import hmac
import re
import secrets
from typing import NamedTuple

import msgspec

from limelight.auth.identity import Scope

PREFIX = "lml"
_ALPHABET = "abcdefghijkmnpqrstuvwxyz23456789"
"""The 32 characters that ids and secrets consist of. None of them looks like another one."""
_ID_LENGTH = 8
_SECRET_LENGTH = 52
LENGTH = len(PREFIX) + 1 + _ID_LENGTH + 1 + _SECRET_LENGTH
_CHAR = "[a-z2-9]"
KEY = re.compile(rf"{PREFIX}_({_CHAR}{{{_ID_LENGTH}}})_({_CHAR}{{{_SECRET_LENGTH}}})")
KEY_BEGINNING = re.compile(
    rf"{PREFIX}_(?:{_CHAR}{{0,{_ID_LENGTH}}}|{_CHAR}{{{_ID_LENGTH}}}_{_CHAR}{{0,{_SECRET_LENGTH - 1}}})\Z"
)
"""Matches an incomplete API key at the end of a text."""


class ApiKey(msgspec.Struct, frozen=True, kw_only=True):
    """A stored API key: a hash instead of the secret. Times are milliseconds since 1970."""

    key_id: str
    secret_hash: str
    user: str
    scopes: tuple[Scope, ...]
    created_at: int
    revoked_at: int | None = None

    def accepts(self, secret: str) -> bool:
        """Whether a secret is the secret of this key, and the key is not revoked."""
        matches = hmac.compare_digest(self.secret_hash, _hash(secret))
        return matches and self.revoked_at is None


class ParsedKey(NamedTuple):
    """The id and the secret of a key that a client has sent."""

    key_id: str
    secret: str


def make_key(user: str, scopes: tuple[Scope, ...], at: int) -> tuple[ApiKey, str]:
    """Create an API key. Return its stored form, and the key itself with the secret, which only its owner gets."""
    key_id, secret = _random(_ID_LENGTH), _random(_SECRET_LENGTH)
    key = ApiKey(key_id=key_id, secret_hash=_hash(secret), user=user, scopes=scopes, created_at=at)
    return key, f"{PREFIX}_{key_id}_{secret}"


def parse_key(text: str) -> ParsedKey | None:
    """Split the text of an API key into id and secret; None if the text does not have the form of a key."""
    match = KEY.fullmatch(text)
    return None if match is None else ParsedKey(match[1], match[2])


def _hash(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()


def _random(length: int) -> str:
    return "".join(secrets.choice(_ALPHABET) for _ in range(length))
