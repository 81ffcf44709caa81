"""The issuer of bearer tokens: fetches its public keys, and says whose a token is.

Keys are fetched with the first token and again from time to time, so that an issuer may change them. A token with an
unknown key asks at once, but not often: whoever makes up tokens cannot make this server ask all the time. An issuer
that does not answer changes nothing for those whose key is known.
"""

import asyncio
import logging
import time
from collections.abc import Callable
from typing import Any, TypeVar
from urllib.parse import urlsplit

import httpx
import msgspec

from limelight.auth.identity import Holder
from limelight.auth.jwt import KeySet, SigningKey, TokenRules, holder_of, key_id_of
from limelight.errors import IssuerUnavailable, SetupError, Unauthorized

FRESH_SECONDS = 600
PAUSE_SECONDS = 10
"""Between two attempts to fetch keys, whatever happens."""
TIMEOUT_SECONDS = 5
DISCOVERY = "/.well-known/openid-configuration"
T = TypeVar("T")
log = logging.getLogger(__name__)


class Issuer:
    """Checks tokens of one issuer."""

    def __init__(self, rules: TokenRules, keys_url: str = "", clock: Callable[[], float] = time.monotonic) -> None:
        """`keys_url` is where its JWKS document is; without one, its OpenID configuration tells."""
        for url in (rules.issuer, keys_url) if keys_url else (rules.issuer,):
            _check_address(url)
        self._rules = rules
        self._keys_url = keys_url
        self._clock = clock
        self._keys: KeySet | None = None
        self._fetched_at = self._asked_at = float("-inf")
        self._asking = asyncio.Lock()

    async def holder(self, token: str) -> Holder:
        """Raises Unauthorized if the token does not hold, IssuerUnavailable if nobody can tell."""
        key = await self._key(key_id_of(token))
        if key is None:
            raise Unauthorized("this token is not accepted: it is signed with a key that its issuer does not have")
        return holder_of(token, key, self._rules)

    async def _key(self, key_id: str | None) -> SigningKey | None:
        known = self._known(key_id)
        if self._is_due(known) and (known is None or not self._asking.locked()):
            async with self._asking:
                if self._is_due(self._known(key_id)):  # nobody has asked meanwhile
                    await self._ask()
        if self._keys is None:
            raise IssuerUnavailable("the keys of the issuer cannot be fetched, so no token can be checked")
        return self._known(key_id)

    def _known(self, key_id: str | None) -> SigningKey | None:
        return None if self._keys is None else self._keys.find(key_id)

    def _is_due(self, known: SigningKey | None) -> bool:
        now = self._clock()
        is_wanted = known is None or now - self._fetched_at >= FRESH_SECONDS
        return is_wanted and now - self._asked_at >= PAUSE_SECONDS

    async def _ask(self) -> None:
        try:
            async with httpx.AsyncClient(timeout=TIMEOUT_SECONDS) as http:
                url = self._keys_url or await self._discover(http)
                self._keys = KeySet((await _fetch(http, url, _Keys)).keys)
            self._fetched_at = self._clock()
        except (httpx.HTTPError, httpx.InvalidURL, ValueError, SetupError) as error:
            log.warning(
                "the keys of issuer %s cannot be fetched: %s", self._rules.issuer, error or type(error).__name__
            )
        finally:
            self._asked_at = self._clock()

    async def _discover(self, http: httpx.AsyncClient) -> str:
        url = (await _fetch(http, self._rules.issuer.rstrip("/") + DISCOVERY, _Discovered)).jwks_uri
        _check_address(url)
        return url


class _Discovered(msgspec.Struct):
    jwks_uri: str


class _Keys(msgspec.Struct):
    keys: list[dict[str, Any]]


async def _fetch(http: httpx.AsyncClient, url: str, type_: type[T]) -> T:
    response = await http.get(url)
    response.raise_for_status()
    return msgspec.json.decode(response.content, type=type_)


def _check_address(url: str) -> None:
    """Keys that come over an open network could be anybody's."""
    parts = urlsplit(url)
    is_here = parts.hostname in ("localhost", "127.0.0.1", "::1")
    if not parts.hostname or (parts.scheme != "https" and not (parts.scheme == "http" and is_here)):
        raise SetupError(f"{url!r} is no address to fetch keys from: it has to begin with https://")
