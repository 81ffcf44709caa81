"""Verifies the tokens of one issuer, whose public keys it fetches and caches.

The keys are fetched with the first token, and again every REFRESH_SECONDS, because an issuer may change them. A token
with an unknown key triggers a fetch too, but at most every MIN_INTERVAL_SECONDS, so that forged tokens cannot cause
many requests. While the issuer is unavailable, tokens with a known key are still accepted.
"""

import asyncio
import logging
import time
from collections.abc import Callable
from typing import Any, TypeVar
from urllib.parse import urlsplit

import httpx
import msgspec

from limelight.auth.identity import Identity
from limelight.auth.jwt import KeySet, SigningKey, TokenRules, key_id_of, verify_token
from limelight.errors import IssuerUnavailable, SetupError, Unauthorized

REFRESH_SECONDS = 600
MIN_INTERVAL_SECONDS = 10
"""Minimum time between two attempts to fetch keys."""
TIMEOUT_SECONDS = 5
DISCOVERY = "/.well-known/openid-configuration"
T = TypeVar("T")
log = logging.getLogger(__name__)


class Issuer:
    """A TokenVerifier for one issuer, which fetches and caches the public keys of the issuer."""

    def __init__(self, rules: TokenRules, keys_url: str = "", clock: Callable[[], float] = time.monotonic) -> None:
        """Create a verifier. Without `keys_url`, the issuer's OpenID configuration names the URL of the JWKS document.

        Raises SetupError for a URL without https.
        """
        for url in (rules.issuer, keys_url) if keys_url else (rules.issuer,):
            _check_url(url)
        self._rules = rules
        self._keys_url = keys_url
        self._clock = clock
        self._keys: KeySet | None = None
        self._fetched_at = self._attempted_at = float("-inf")
        self._fetching = asyncio.Lock()

    async def verify(self, token: str) -> Identity:
        """Verify a bearer token of this issuer, and return the user and scopes of the caller.

        Raises Unauthorized for an invalid token, and IssuerUnavailable if the issuer's keys cannot be fetched.
        """
        key = await self._key(key_id_of(token))
        if key is None:
            raise Unauthorized("this token is not accepted: it is signed with a key that its issuer does not have")
        return verify_token(token, key, self._rules)

    async def _key(self, key_id: str | None) -> SigningKey | None:
        known = self._known(key_id)
        if self._is_due(known) and (known is None or not self._fetching.locked()):
            async with self._fetching:
                if self._is_due(self._known(key_id)):  # another request may have fetched the keys
                    await self._fetch_keys()
        if self._keys is None:
            raise IssuerUnavailable("the keys of the issuer cannot be fetched, so no token can be checked")
        return self._known(key_id)

    def _known(self, key_id: str | None) -> SigningKey | None:
        return None if self._keys is None else self._keys.find(key_id)

    def _is_due(self, known: SigningKey | None) -> bool:
        now = self._clock()
        is_needed = known is None or now - self._fetched_at >= REFRESH_SECONDS
        return is_needed and now - self._attempted_at >= MIN_INTERVAL_SECONDS

    async def _fetch_keys(self) -> None:
        try:
            async with httpx.AsyncClient(timeout=TIMEOUT_SECONDS) as http:
                url = self._keys_url or await self._discover(http)
                self._keys = KeySet((await _fetch(http, url, _Jwks)).keys)
            self._fetched_at = self._clock()
        except (httpx.HTTPError, httpx.InvalidURL, ValueError, SetupError) as error:
            log.warning(
                "the keys of issuer %s cannot be fetched: %s", self._rules.issuer, error or type(error).__name__
            )
        finally:
            self._attempted_at = self._clock()

    async def _discover(self, http: httpx.AsyncClient) -> str:
        """Fetch the issuer's OpenID configuration, and return the URL of the JWKS document that it names."""
        url = (await _fetch(http, self._rules.issuer.rstrip("/") + DISCOVERY, _OpenIdConfiguration)).jwks_uri
        _check_url(url)
        return url


class _OpenIdConfiguration(msgspec.Struct):
    jwks_uri: str


class _Jwks(msgspec.Struct):
    keys: list[dict[str, Any]]


async def _fetch(http: httpx.AsyncClient, url: str, type_: type[T]) -> T:
    response = await http.get(url)
    response.raise_for_status()
    return msgspec.json.decode(response.content, type=type_)


def _check_url(url: str) -> None:
    """Raise SetupError if the URL of an issuer does not use https: keys over plain HTTP could be forged.

    A URL on this machine may use plain HTTP.
    """
    parts = urlsplit(url)
    is_local = parts.hostname in ("localhost", "127.0.0.1", "::1")
    if not parts.hostname or (parts.scheme != "https" and not (parts.scheme == "http" and is_local)):
        raise SetupError(f"{url!r} is not an address for keys: it has to begin with https://")
