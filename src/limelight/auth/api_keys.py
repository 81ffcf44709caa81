"""API keys: `lml_ID_SECRET`. The id finds a key, the secret proves it, and only a hash of the secret is kept.

A secret has 256 random bits, so a fast hash is enough: nobody can try them all, as they could with passwords.
Pure but for the random numbers of `make_key`.
"""

import hashlib
import hmac
import re
import secrets
from typing import NamedTuple

import msgspec

from limelight.auth.scopes import Scope

PREFIX = "lml"
_ALPHABET = "abcdefghijkmnpqrstuvwxyz23456789"
"""Thirty-two signs, without those that are taken for others."""
_ID_LENGTH = 8
_SECRET_LENGTH = 52
LENGTH = len(PREFIX) + 1 + _ID_LENGTH + 1 + _SECRET_LENGTH
_SIGN = "[a-z2-9]"
KEY = re.compile(rf"{PREFIX}_({_SIGN}{{{_ID_LENGTH}}})_({_SIGN}{{{_SECRET_LENGTH}}})")
BEGINNING = re.compile(
    rf"{PREFIX}_(?:{_SIGN}{{0,{_ID_LENGTH}}}|{_SIGN}{{{_ID_LENGTH}}}_{_SIGN}{{0,{_SECRET_LENGTH - 1}}})\Z"
)
"""Of a key that is not whole yet, at the end of a text."""


class ApiKey(msgspec.Struct, frozen=True, kw_only=True):
    """A key as it is kept. Times are milliseconds since 1970."""

    key_id: str
    secret_hash: str
    user: str
    scopes: tuple[Scope, ...]
    created_at: int
    revoked_at: int | None = None

    def opens_with(self, secret: str) -> bool:
        same = hmac.compare_digest(self.secret_hash, hash_of(secret))
        return same and self.revoked_at is None


class Written(NamedTuple):
    """A key as its holder has it, taken apart."""

    key_id: str
    secret: str


def make_key(user: str, scopes: tuple[Scope, ...], at: int) -> tuple[ApiKey, str]:
    """A new key: what is kept of it, and what its holder gets, once."""
    key_id, secret = _random(_ID_LENGTH), _random(_SECRET_LENGTH)
    kept = ApiKey(key_id=key_id, secret_hash=hash_of(secret), user=user, scopes=scopes, created_at=at)
    return kept, f"{PREFIX}_{key_id}_{secret}"


def read_key(text: str) -> Written | None:
    """None for whatever is not written as a key."""
    match = KEY.fullmatch(text)
    return None if match is None else Written(match[1], match[2])


def hash_of(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()


def _random(length: int) -> str:
    return "".join(secrets.choice(_ALPHABET) for _ in range(length))
