"""Chooses the model of a built-in agent: a real model, or the understudy (the offline model). Pure.

A real model is used only if LIMELIGHT_MODEL or the agent's table names one, so that a key that happens to be in the
environment does not cost money. The address of the understudy is known only when its server runs.
"""

from collections.abc import Mapping
from urllib.parse import urlsplit

import msgspec

from limelight.errors import SetupError
from limelight.sources.base import AgentResources

OPENAI = "https://api.openai.com/v1"
UNDERSTUDY = "understudy"
NO_KEY = "none"
"""The API key sent to model servers that need none, because client libraries require one."""
ADDRESS_RULE = "it has to begin with http:// or https://, as http://127.0.0.1:11434/v1 does"


class ModelChoice(msgspec.Struct, frozen=True):
    """The model of an agent, with its server's URL and API key. An empty URL means the offline model."""

    model: str = UNDERSTUDY
    base_url: str = ""
    key: str = ""

    @property
    def is_understudy(self) -> bool:
        return not self.base_url


def choose_model(model: str, base_url: str, environ: Mapping[str, str]) -> ModelChoice:
    """Return the model that the agent's settings or the environment select; by default the offline model.

    Raises SetupError if the name, the address or the key of the model is missing or invalid.
    """
    named = model or environ.get("LIMELIGHT_MODEL", "")
    if not named:
        if base_url:
            raise SetupError("base_url needs a model: set model too, or LIMELIGHT_MODEL")
        return ModelChoice()
    if not base_url and not is_http_url(environ.get("OPENAI_BASE_URL", "") or OPENAI):
        raise SetupError(f"OPENAI_BASE_URL {environ['OPENAI_BASE_URL']!r} is not a valid address: {ADDRESS_RULE}")
    address = base_url or environ.get("OPENAI_BASE_URL", "") or OPENAI
    key = environ.get("OPENAI_API_KEY", "")
    if not key and urlsplit(address).hostname == urlsplit(OPENAI).hostname:
        raise SetupError(
            f"the model {named!r} at {address} needs a key: set OPENAI_API_KEY, or OPENAI_BASE_URL for another server"
        )
    return ModelChoice(named, address, key or NO_KEY)


def is_http_url(url: str) -> bool:
    """Whether the text is an HTTP or HTTPS URL."""
    try:
        parts = urlsplit(url)
        _ = parts.port  # raises ValueError if the port is invalid
    except ValueError:
        return False
    return parts.scheme in ("http", "https") and bool(parts.hostname) and url.split() == [url]


async def resolve_address(choice: ModelChoice, resources: AgentResources) -> ModelChoice:
    """Complete a choice of the offline model with its server's URL and key. The first call starts that server."""
    if not choice.is_understudy:
        return choice
    base_url, key = await resources.understudy()
    return ModelChoice(UNDERSTUDY, base_url, key)
