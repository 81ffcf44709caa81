"""Which model an agent talks to. Pure.

A real one only if somebody has named it, by LIMELIGHT_MODEL or in the agent's table: a key that happens to be in the
shell must not spend money. Otherwise the understudy plays, whose address is known when the server runs.
"""

from collections.abc import Mapping
from urllib.parse import urlsplit

import msgspec

from limelight.errors import SetupError
from limelight.sources.base import AgentResources

OPENAI = "https://api.openai.com/v1"
UNDERSTUDY = "understudy"
NO_KEY = "none"
"""What servers on one's own machine are given as a key; they do not look at it, but clients insist on one."""
ADDRESS_RULE = "it has to begin with http:// or https://, as http://127.0.0.1:11434/v1 does"


class ModelChoice(msgspec.Struct, frozen=True):
    """A model, and where it is. Without an address it is the understudy."""

    model: str = UNDERSTUDY
    base_url: str = ""
    key: str = ""

    @property
    def is_understudy(self) -> bool:
        return not self.base_url


def choose_model(model: str, base_url: str, environ: Mapping[str, str]) -> ModelChoice:
    """What the agent's settings and the environment say. Raises SetupError if that is not enough to reach a model."""
    named = model or environ.get("LIMELIGHT_MODEL", "")
    if not named:
        if base_url:
            raise SetupError("base_url says where a model is, but not which: set model too, or LIMELIGHT_MODEL")
        return ModelChoice()
    if not base_url and not is_address(environ.get("OPENAI_BASE_URL", "") or OPENAI):
        raise SetupError(f"OPENAI_BASE_URL {environ['OPENAI_BASE_URL']!r} is no address: {ADDRESS_RULE}")
    place = base_url or environ.get("OPENAI_BASE_URL", "") or OPENAI
    key = environ.get("OPENAI_API_KEY", "")
    if not key and urlsplit(place).hostname == urlsplit(OPENAI).hostname:
        raise SetupError(
            f"the model {named!r} at {place} needs a key: set OPENAI_API_KEY, or OPENAI_BASE_URL for another server"
        )
    return ModelChoice(named, place, key or NO_KEY)


def is_address(url: str) -> bool:
    """Whether something on the web could be there."""
    try:
        parts = urlsplit(url)
        _ = parts.port  # raises ValueError if it is none
    except ValueError:
        return False
    return parts.scheme in ("http", "https") and bool(parts.hostname) and url.split() == [url]


async def address_of(choice: ModelChoice, resources: AgentResources) -> ModelChoice:
    """The choice with an address: the understudy is started by whoever first asks for it."""
    if not choice.is_understudy:
        return choice
    base_url, key = await resources.understudy()
    return ModelChoice(UNDERSTUDY, base_url, key)
