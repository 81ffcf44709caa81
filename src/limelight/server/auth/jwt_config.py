"""The issuer of tokens that the settings name, if they name one."""

from typing import Any

from limelight.auth.identity import TokenVerifier
from limelight.config import Settings
from limelight.errors import SetupError

CLAIMS = ("user_claim", "name_claim", "scope_claim")


def issuer_of(settings: Settings) -> TokenVerifier | None:
    """None without one. Raises SetupError if what is set cannot work."""
    auth = settings.auth
    if not auth.issuer:
        for name in ("audience", "jwks_url"):
            if getattr(auth, name):
                raise _wrong(settings, name, f"auth.{name} is for tokens, which need auth.issuer too")
        return None
    if not auth.audience:
        why = "auth.issuer needs auth.audience too, or tokens for other services of that issuer would be good here"
        raise _wrong(settings, "issuer", why)
    for name in CLAIMS:
        if not getattr(auth, name):
            raise _wrong(settings, name, f"auth.{name} is empty: leave it out, or name a claim")
    try:
        from limelight.auth.jwt import TokenRules
        from limelight.auth.jwt_issuer import Issuer
    except ImportError as error:
        raise _wrong(settings, "issuer", "tokens need PyJWT: pip install 'limelight[jwt]'") from error
    rules: dict[str, Any] = {name: getattr(auth, name) for name in CLAIMS}
    try:
        return Issuer(
            TokenRules(issuer=auth.issuer, audience=auth.audience, scopes=auth.token_scopes, **rules),
            auth.jwks_url,
        )
    except SetupError as error:
        raise _wrong(settings, "jwks_url" if auth.jwks_url else "issuer", error.detail) from error


def _wrong(settings: Settings, name: str, why: str) -> SetupError:
    return SetupError(f"{settings.origin.place('auth', name)}{why}")
