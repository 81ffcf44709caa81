"""What every request to the server carries: the key, and for whom it is. A key that cannot be sent is never shown."""

from urllib.parse import quote

from openwebui.parts.types import Json
from openwebui.parts.valves import Valves


class Unusable(Exception):
    """A valve has a value that no request can carry."""


def headers_of(valves: Valves, user: Json) -> dict[str, str]:
    """Without a key nobody is named: the server would not believe it. Raises Unusable."""
    key = valves.API_KEY
    if not key:
        return {}
    if not (key.isascii() and key.isprintable()):
        raise Unusable(
            "the valve API_KEY of the Deep Agent Pipe has a sign that no key can have, "
            "like a line break, an accent or a quotation mark of a word processor: type the key again"
        )
    return {
        "Authorization": f"Bearer {key}",
        "X-Limelight-User-Id": quote(str(user.get("id") or ""), safe="", errors="replace"),
        "X-Limelight-User-Name": quote(str(user.get("name") or ""), safe="", errors="replace"),
    }
