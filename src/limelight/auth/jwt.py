"""Bearer tokens that somebody else has issued (JWT): what they have to say, and whose they are.

Only signatures with public keys count. A token that is signed with a shared secret, or not at all, is no token here.
Pure; `issuer` brings the keys.
"""

# pyright: reportUnknownMemberType=false

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple, cast

import jwt
import msgspec

from limelight.auth.identity import Holder
from limelight.auth.scopes import SCOPES, Scope
from limelight.auth.user_names import wrong_with_user
from limelight.errors import Unauthorized

RSA = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512")
ALGORITHMS = (*RSA, "ES256", "ES384", "ES512", "EdDSA")
CLOCKS_DIFFER_SECONDS = 30
SCOPE_PREFIX = "limelight:"
"""Before a scope in a token, whose words may be meant for other services too."""
_WHY: dict[type[Exception], str] = {
    jwt.ExpiredSignatureError: "it has expired",
    jwt.ImmatureSignatureError: "it is not valid yet",
    jwt.InvalidAudienceError: "it is for another audience",
    jwt.InvalidIssuerError: "it is of another issuer",
    jwt.InvalidAlgorithmError: "it is signed in a way that is not accepted here",
    jwt.InvalidSignatureError: "its signature is wrong",
}


class TokenRules(msgspec.Struct, frozen=True, kw_only=True):
    """What a token has to say, and how it says whose it is."""

    issuer: str
    audience: str
    user_claim: str = "sub"
    name_claim: str = "name"
    scope_claim: str = "scope"
    scopes: tuple[Scope, ...] = ("use",)
    """What every token allows; one that names scopes allows those too."""


class SigningKey(NamedTuple):
    """A public key, and the algorithms that may be used with it."""

    key_id: str | None
    key: Any
    algorithms: tuple[str, ...]


class KeySet:
    """The public keys of an issuer."""

    def __init__(self, keys: Iterable[dict[str, Any]]) -> None:
        """From the keys of a JWKS document. Raises ValueError if a token could be signed with none of them."""
        self._keys = [key for entry in keys if (key := _signing_key(entry)) is not None]
        if not self._keys:
            raise ValueError("there is no public key in it for signatures")

    def find(self, key_id: str | None) -> SigningKey | None:
        """The key of this id. A token need not name a key if there is only one."""
        if key_id is None:
            return self._keys[0] if len(self._keys) == 1 else None
        return next((key for key in self._keys if key.key_id == key_id), None)


def _signing_key(entry: dict[str, Any]) -> SigningKey | None:
    """None for whatever is no key to us: one for encryption, a secret, a kind that we do not know."""
    if entry.get("use", "sig") != "sig" or entry.get("kty") == "oct":
        return None
    try:
        key = jwt.PyJWK(entry)
    except jwt.PyJWTError:
        return None
    any_of_rsa = entry.get("kty") == "RSA" and "alg" not in entry
    algorithms = tuple(name for name in ALGORITHMS if name == key.algorithm_name or (any_of_rsa and name in RSA))
    return SigningKey(key.key_id, key.key, algorithms) if algorithms else None


def key_id_of(token: str) -> str | None:
    """Which key a token says it is signed with; None if it does not say. Raises Unauthorized if it is no token."""
    try:
        key_id = jwt.get_unverified_header(token).get("kid")
    except jwt.PyJWTError as error:
        raise _refused("it cannot be read") from error
    return key_id if isinstance(key_id, str) else None


def holder_of(token: str, key: SigningKey, rules: TokenRules) -> Holder:
    """Whom the token stands for. Raises Unauthorized, with the reason, if it does not hold."""
    try:
        claims = jwt.decode(
            token,
            key.key,
            algorithms=key.algorithms,
            audience=rules.audience,
            issuer=rules.issuer,
            leeway=CLOCKS_DIFFER_SECONDS,
            options={"require": ["exp", "iss", "aud"], "verify_sub": False},
        )
    except jwt.PyJWTError as error:
        raise _refused(next((why for kind, why in _WHY.items() if isinstance(error, kind)), str(error))) from error
    name = _text(claims, rules.name_claim).strip()
    return Holder(_user_of(claims, rules.user_claim), name, _scopes_of(claims, rules))


def _user_of(claims: Mapping[str, Any], claim: str) -> str:
    user_id = _text(claims, claim)
    if not user_id.strip():
        raise _refused(f"its claim {claim!r} names no user")
    if wrong := wrong_with_user(user_id):
        raise _refused(wrong)
    return user_id


def _scopes_of(claims: Mapping[str, Any], rules: TokenRules) -> frozenset[Scope]:
    said: Any = claims.get(rules.scope_claim)
    words = said.split() if isinstance(said, str) else cast("list[object]", said) if isinstance(said, list) else ()
    named: list[Scope] = [scope for scope in SCOPES if SCOPE_PREFIX + scope in words]
    return frozenset((*rules.scopes, *named))


def _text(claims: Mapping[str, Any], claim: str) -> str:
    value = claims.get(claim)
    return value if isinstance(value, str) else ""


def _refused(why: str) -> Unauthorized:
    return Unauthorized(f"this token is not accepted: {why}")
