"""Verification of bearer tokens (JWT): signature, claims, user and scopes.

Only signatures with asymmetric keys are accepted; tokens that are unsigned or signed with a shared secret are refused.
Pure; `jwt_issuer` fetches the keys.
"""

# pyright: reportUnknownMemberType=false

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple, cast

import jwt
import msgspec

from limelight.auth.identity import SCOPES, Identity, Scope, user_id_error
from limelight.errors import Unauthorized

RSA = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512")
ALGORITHMS = (*RSA, "ES256", "ES384", "ES512", "EdDSA")
LEEWAY_SECONDS = 30
SCOPE_PREFIX = "limelight:"
"""The prefix by which Limelight recognizes its scopes in a token, which may also contain scopes of other services."""
_REASONS: dict[type[Exception], str] = {
    jwt.ExpiredSignatureError: "it has expired",
    jwt.ImmatureSignatureError: "it is not valid yet",
    jwt.InvalidAudienceError: "it is for another audience",
    jwt.InvalidIssuerError: "it is of another issuer",
    jwt.InvalidAlgorithmError: "it is signed in a way that is not accepted here",
    jwt.InvalidSignatureError: "its signature is wrong",
}


class TokenRules(msgspec.Struct, frozen=True, kw_only=True):
    """The claims that a token must have, and the names of the claims from which user and scopes are read."""

    issuer: str
    audience: str
    user_claim: str = "sub"
    name_claim: str = "name"
    scope_claim: str = "scope"
    scopes: tuple[Scope, ...] = ("use",)
    """Scopes that every token has, in addition to the scopes in its claims."""


class SigningKey(NamedTuple):
    """A public key, and the signature algorithms that are allowed with it."""

    key_id: str | None
    key: Any
    algorithms: tuple[str, ...]


class KeySet:
    """The public keys of an issuer."""

    def __init__(self, keys: Iterable[dict[str, Any]]) -> None:
        """Read the keys of a JWKS document. Raises ValueError if none of them is for signatures."""
        self._keys = [key for entry in keys if (key := _signing_key(entry)) is not None]
        if not self._keys:
            raise ValueError("there is no public key in it for signatures")

    def find(self, key_id: str | None) -> SigningKey | None:
        """Return the public key with this key id; for the id None, the only key of the set. None if no key fits."""
        if key_id is None:
            return self._keys[0] if len(self._keys) == 1 else None
        return next((key for key in self._keys if key.key_id == key_id), None)


def _signing_key(entry: dict[str, Any]) -> SigningKey | None:
    """Return the public key in an entry of a JWKS document; None if it cannot verify signatures.

    Entries without such a key are keys for encryption, shared secrets and unknown types of keys.
    """
    if entry.get("use", "sig") != "sig" or entry.get("kty") == "oct":
        return None
    try:
        key = jwt.PyJWK(entry)
    except jwt.PyJWTError:
        return None
    any_rsa = entry.get("kty") == "RSA" and "alg" not in entry
    algorithms = tuple(name for name in ALGORITHMS if name == key.algorithm_name or (any_rsa and name in RSA))
    return SigningKey(key.key_id, key.key, algorithms) if algorithms else None


def key_id_of(token: str) -> str | None:
    """Return the key id in the header of a token; None if it has none. Raises Unauthorized if the text is not a JWT."""
    try:
        key_id = jwt.get_unverified_header(token).get("kid")
    except jwt.PyJWTError as error:
        raise _refused("it cannot be read") from error
    return key_id if isinstance(key_id, str) else None


def verify_token(token: str, key: SigningKey, rules: TokenRules) -> Identity:
    """Verify a token, and return its user and scopes. Raises Unauthorized, with the reason, if the token is invalid."""
    try:
        claims = jwt.decode(
            token,
            key.key,
            algorithms=key.algorithms,
            audience=rules.audience,
            issuer=rules.issuer,
            leeway=LEEWAY_SECONDS,
            options={"require": ["exp", "iss", "aud"], "verify_sub": False},
        )
    except jwt.PyJWTError as error:
        raise _refused(
            next((reason for kind, reason in _REASONS.items() if isinstance(error, kind)), str(error))
        ) from error
    name = _text(claims, rules.name_claim).strip()
    return Identity(_user_of(claims, rules.user_claim), name, _scopes_of(claims, rules))


def _user_of(claims: Mapping[str, Any], claim: str) -> str:
    user_id = _text(claims, claim)
    if not user_id.strip():
        raise _refused(f"its claim {claim!r} names no user")
    if error := user_id_error(user_id):
        raise _refused(error)
    return user_id


def _scopes_of(claims: Mapping[str, Any], rules: TokenRules) -> frozenset[Scope]:
    value: Any = claims.get(rules.scope_claim)
    words = value.split() if isinstance(value, str) else cast("list[object]", value) if isinstance(value, list) else ()
    named: list[Scope] = [scope for scope in SCOPES if SCOPE_PREFIX + scope in words]
    return frozenset((*rules.scopes, *named))


def _text(claims: Mapping[str, Any], claim: str) -> str:
    value = claims.get(claim)
    return value if isinstance(value, str) else ""


def _refused(reason: str) -> Unauthorized:
    return Unauthorized(f"this token is not accepted: {reason}")
