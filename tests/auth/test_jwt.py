"""Verification of tokens: signatures, claims, users and scopes."""

import base64
import time
from typing import Any

import jwt
import pytest

from limelight.auth.jwt import KeySet, TokenRules, key_id_of, verify_token
from limelight.errors import Unauthorized
from tests.auth.local_issuer import AUDIENCE, PAIRS, KeyPair, LocalIssuer

ISSUER = LocalIssuer("https://login.example")
RULES = TokenRules(issuer=ISSUER.url, audience=AUDIENCE)


def verify(token: str, keys: list[dict[str, Any]] | None = None, rules: TokenRules = RULES) -> Any:
    key = KeySet(keys or [ISSUER.keys[0].public()]).find(key_id_of(token))
    assert key is not None
    return verify_token(token, key, rules)


def refusal(token: str, **options: Any) -> str:
    with pytest.raises(Unauthorized) as refused:
        verify(token, **options)
    return refused.value.detail.removeprefix("this token is not accepted: ")


@pytest.mark.parametrize("declares", [True, False])
@pytest.mark.parametrize("algorithm", PAIRS)
def test_token_with_any_public_key_algorithm_is_accepted(algorithm: str, declares: bool) -> None:
    pair = KeyPair("k", algorithm)
    public = pair.public(**({"alg": algorithm} if declares else {}))
    assert verify(ISSUER.token("ann", by=pair, name="Ann Other"), [public]) == ("ann", "Ann Other", {"use"})


@pytest.mark.requirement("tokens")
@pytest.mark.parametrize(
    ("claims", "reason"),
    [
        ({"lasts": -60}, "it has expired"),
        ({"exp": None}, 'Token is missing the "exp" claim'),
        ({"nbf": time.time() + 86_400}, "it is not valid yet"),
        ({"aud": "others"}, "it is for another audience"),
        ({"aud": None}, 'Token is missing the "aud" claim'),
        ({"iss": "https://evil.example"}, "it is of another issuer"),
        ({"user": None}, "its claim 'sub' names no user"),
        ({"user": 7}, "its claim 'sub' names no user"),
        ({"user": "  "}, "its claim 'sub' names no user"),
        ({"user": " ann "}, "a user id has no spaces around it"),
        ({"user": " local"}, "a user id has no spaces around it"),
        ({"user": "a\x00b"}, "a user id is text that can be printed, percent-encoded as UTF-8 in a header"),
        ({"user": "x" * 300}, "a user id has at most 256 characters, and at least one"),
        ({"by": KeyPair("one")}, "its signature is wrong"),
    ],
)
def test_invalid_token_is_refused_with_the_reason(claims: dict[str, Any], reason: str) -> None:
    assert refusal(ISSUER.token(**claims)) == reason


def test_token_that_expired_within_the_leeway_is_accepted() -> None:
    assert verify(ISSUER.token(lasts=-5)).user_id == "ann"


@pytest.mark.requirement("tokens")
def test_hmac_signature_with_the_public_key_is_refused() -> None:
    """A known attack: sign with HMAC, and use the public key as the secret."""
    public = ISSUER.keys[0].public()
    claims = {"iss": ISSUER.url, "aud": AUDIENCE, "sub": "ann", "exp": time.time() + 60}
    secret = public["n"].encode()
    forged = jwt.encode(claims, secret, "HS256", headers={"kid": "one"})
    assert refusal(forged) == "it is signed in a way that is not accepted here"
    oct_key = {"kty": "oct", "kid": "one", "k": base64.urlsafe_b64encode(secret).decode().rstrip("=")}
    with pytest.raises(ValueError, match="no public key"):
        KeySet([oct_key])


def test_unsigned_token_is_refused() -> None:
    head, claims, _ = ISSUER.token().split(".")
    none = base64.urlsafe_b64encode(b'{"alg": "none", "kid": "one"}').decode().rstrip("=")
    assert refusal(f"{none}.{claims}.") == "it is signed in a way that is not accepted here"
    assert refusal(f"{head}.{claims}.") == "its signature is wrong"


def test_key_is_used_only_with_its_declared_algorithm() -> None:
    token = ISSUER.token(by=KeyPair("one", "PS384"))
    assert (
        refusal(token, keys=[ISSUER.keys[0].public(alg="RS256")]) == "it is signed in a way that is not accepted here"
    )


@pytest.mark.parametrize("text", ["..", "a.b.c", "eyJ.eyJ.x", "\u2026.\u2026.\u2026"])
def test_text_that_is_not_a_token_is_refused(text: str) -> None:
    with pytest.raises(Unauthorized, match="it cannot be read"):
        key_id_of(text)


@pytest.mark.parametrize(
    ("claims", "scopes"),
    [
        ({}, {"use"}),
        ({"scope": "openid limelight:admin"}, {"use", "admin"}),
        ({"scope": ["limelight:on-behalf-of", 7]}, {"use", "on-behalf-of"}),
        ({"scope": "admin"}, {"use"}),
        ({"scope": {"limelight:admin": True}}, {"use"}),
    ],
)
def test_only_scopes_with_our_prefix_count(claims: dict[str, Any], scopes: set[str]) -> None:
    assert verify(ISSUER.token(**claims)).scopes == scopes


def test_names_of_claims_can_be_configured() -> None:
    rules = TokenRules(
        issuer=ISSUER.url, audience=AUDIENCE, user_claim="email", name_claim="nick", scope_claim="roles", scopes=()
    )
    token = ISSUER.token(email="ann@example.org", nick="Ann", roles=["limelight:use"], aud=["x", AUDIENCE])
    assert verify(token, rules=rules) == ("ann@example.org", "Ann", {"use"})


def test_key_set_ignores_keys_that_cannot_sign() -> None:
    one, two = KeyPair("one"), KeyPair("two", "ES256")
    keys = KeySet([one.public(use="enc"), {"kty": "quantum", "kid": "q"}, {}, two.public(), {"kty": "RSA", "kid": "n"}])
    assert keys.find("one") is None and keys.find("q") is None and keys.find("n") is None
    assert keys.find("two") is not None
    assert keys.find(None) is keys.find("two")  # the only key that can sign
    assert KeySet([one.public(), two.public()]).find(None) is None
