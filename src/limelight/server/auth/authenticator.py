"""Authentication of API keys and tokens: determines the user and the scopes of a request."""

import hmac
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from limelight.auth.identity import ALL_SCOPES, MAX_USER_ID, SYSTEM, Identity, Scope, TokenVerifier, looks_like_jwt
from limelight.auth.key_file import Keyring
from limelight.config import Settings
from limelight.errors import BadRequest, Forbidden, SetupError, StoreUnavailable, Unauthorized
from limelight.models import LOCAL_OWNER, User

log = logging.getLogger(__name__)
T = TypeVar("T")
CLAIMS = ("user_claim", "name_claim", "scope_claim")


class Caller(msgspec.Struct, frozen=True):
    """The user for whom a request is sent, and the scopes of the request's key."""

    user: User
    scopes: frozenset[Scope]
    is_named: bool = False
    """Whether the user is the one in the header `X-Limelight-User-Id`, not the one of the key."""

    def has(self, scope: Scope) -> bool:
        return scope in self.scopes

    def require(self, scope: Scope) -> None:
        """Raise Forbidden if the key of the caller does not have this scope."""
        if scope not in self.scopes:
            scopes = ", ".join(sorted(self.scopes)) or "none"
            raise Forbidden(f"this needs a key with the scope {scope!r}; the scopes of yours: {scopes}")

    def check_user(self, user_id: str, path: str) -> None:
        """Raise BadRequest if a caller asks to act as the user `local`, which has no limits, and is another user."""
        if user_id == LOCAL_OWNER != self.user.user_id:
            detail = f"the user {LOCAL_OWNER!r} is the server's own: only LIMELIGHT_API_KEY speaks for them"
            raise BadRequest(detail, path=path)


ANONYMOUS = Caller(User(LOCAL_OWNER), frozenset())
"""The caller of public routes, without a key and without scopes."""
LOCAL = Caller(User(LOCAL_OWNER), ALL_SCOPES - {"on-behalf-of"})
"""The caller of every request to a server that needs no key. It has all scopes except `on-behalf-of`."""


class Authenticator:
    """Checks the keys and tokens of requests.

    It accepts the API key of the settings, the keys of the data folder, and tokens of the issuer in the settings.
    """

    def __init__(self, api_key: str, keyring: Keyring, issuer: TokenVerifier | None = None) -> None:
        if not (api_key.isascii() and api_key.isprintable()) or " " in api_key:
            raise SetupError("auth.api_key (LIMELIGHT_API_KEY) is sent in a header: no spaces, and nothing but ASCII")
        self._api_key = api_key.encode()
        self._keyring = keyring
        self._issuer = issuer
        self._logged_error = ""
        """The last logged error of reading the keyring; "" once it can be read again."""

    @classmethod
    def from_settings(cls, settings: Settings) -> "Authenticator":
        return cls(settings.auth.api_key, Keyring(Path(settings.store.data)), _make_issuer(settings))

    @property
    def is_open(self) -> bool:
        """Whether the server needs no key, because it has neither keys nor an issuer of tokens."""
        return not self._api_key and self._issuer is None and not self._read(self._keyring.has_any)

    async def authenticate(self, token: str) -> Caller | None:
        """Return the caller whose key or token this is; None if the key is unknown or revoked.

        Raises Unauthorized, with the reason, for an invalid token, and IssuerUnavailable if a token cannot be checked.
        """
        if self._api_key and hmac.compare_digest(token.encode(), self._api_key):
            return Caller(User(LOCAL_OWNER), ALL_SCOPES)
        if self._issuer is not None and looks_like_jwt(token):
            return _token_caller(await self._issuer.verify(token))
        key = self._read(lambda: self._keyring.find(token))
        if key is not None and key.user == SYSTEM:  # from a version that could create such keys
            raise Unauthorized(f"the user {SYSTEM!r} is the server itself: make a key with another name")
        return None if key is None else Caller(User(key.user), frozenset(key.scopes))

    def _read(self, read: Callable[[], T]) -> T:
        """Return the result of `read`, a function that reads the keyring.

        If the keyring cannot be read, raise StoreUnavailable and log the reason, which contains a path.
        """
        try:
            value = read()
        except SetupError as error:
            if error.detail != self._logged_error:  # log once, not with each request
                log.error("%s", error.detail)
            self._logged_error = error.detail
            raise StoreUnavailable("the keys of this server cannot be read; its log says why") from error
        self._logged_error = ""
        return value


def _token_caller(identity: Identity) -> Caller:
    if identity.user_id == LOCAL_OWNER:  # an issuer must not grant access as the server's own user
        raise Unauthorized(f"this token is not accepted: the user {LOCAL_OWNER!r} is the server's own")
    name = identity.name.encode(errors="ignore").decode()  # JSON may contain lone surrogates, which UTF-8 cannot encode
    return Caller(User(identity.user_id, name[:MAX_USER_ID]), identity.scopes)


def _make_issuer(settings: Settings) -> TokenVerifier | None:
    """Return the verifier for tokens of the issuer in the settings; None if the settings have no issuer.

    Raises SetupError if the settings are inconsistent or a package is missing.
    """
    auth = settings.auth
    if not auth.issuer:
        for name in ("audience", "jwks_url"):
            if getattr(auth, name):
                raise _setup_error(settings, name, f"auth.{name} is for tokens, which need auth.issuer too")
        return None
    if not auth.audience:
        reason = "auth.issuer needs auth.audience too, or tokens for other services of that issuer would be good here"
        raise _setup_error(settings, "issuer", reason)
    for name in CLAIMS:
        if not getattr(auth, name):
            raise _setup_error(settings, name, f"auth.{name} is empty: leave it out, or name a claim")
    try:
        from limelight.auth.jwt import TokenRules
        from limelight.auth.jwt_issuer import Issuer
    except ImportError as error:
        raise _setup_error(settings, "issuer", "tokens need PyJWT: pip install 'limelight[jwt]'") from error
    claims: dict[str, Any] = {name: getattr(auth, name) for name in CLAIMS}
    rules = TokenRules(issuer=auth.issuer, audience=auth.audience, scopes=auth.token_scopes, **claims)
    try:
        return Issuer(rules, auth.jwks_url)
    except SetupError as error:
        raise _setup_error(settings, "jwks_url" if auth.jwks_url else "issuer", error.detail) from error


def _setup_error(settings: Settings, name: str, reason: str) -> SetupError:
    return SetupError(f"{settings.origin.place('auth', name)}{reason}")
