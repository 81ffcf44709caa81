"""The few calls of Open WebUI's API that an installation needs. Every failure says what to do about it."""

from enum import Enum
from types import TracebackType, UnionType
from typing import Any, Self, cast
from urllib.parse import quote

import httpx

from limelight.errors import SetupError

VERSION = "/api/version"
SECONDS = 60
"""A first start loads for a while, and saving a function makes Open WebUI execute it."""

EVERYBODY = {"principal_type": "user", "principal_id": "*", "permission": "read"}


class Shared(Enum):
    """Whether everybody may choose a model: since now, since before, or not, because somebody has said who may."""

    NOW = "now"
    BEFORE = "before"
    NOT = "not"


class OpenWebUI:
    """One Open WebUI, spoken to as one user."""

    def __init__(self, url: str) -> None:
        self.url = url.rstrip("/")
        try:
            self._http = httpx.Client(base_url=self.url, timeout=SECONDS, follow_redirects=True)
        except (httpx.InvalidURL, ValueError) as error:
            raise SetupError(f"--url is not an address: {error}") from error

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._http.close()

    def version(self) -> str:
        """Also finds out where it really is: a redirect would make a GET of each POST."""
        reply = self._send("GET", VERSION)
        version = _object(reply).get("version")
        if reply.status_code != 200 or not version:
            raise SetupError(f"{self.url} answers, but not like Open WebUI: is the address right?")
        self._move(str(reply.url))
        return str(version)

    def _move(self, found: str) -> None:
        url = found.removesuffix(VERSION)
        if not found.endswith(VERSION) or url == str(self._http.base_url).rstrip("/"):
            return
        if self.url.startswith("https:") and not url.startswith("https:"):
            raise SetupError(f"{self.url} redirects to {url}, where everybody on the way could read the token")
        self.url = url
        self._http.base_url = url

    def sign_in(self, email: str, password: str) -> None:
        reply = self._send("POST", "/api/v1/auths/signin", {"email": email, "password": password})
        if reply.status_code != 200:
            raise SetupError(f"Open WebUI does not let {email} in: {_reason(reply)}")
        token = _object(reply).get("token")
        if not isinstance(token, str):
            raise self._stranger("the sign-in")
        self.use_token(token)

    def use_token(self, token: str) -> None:
        token = token.strip()
        if not (token.isascii() and token.isprintable()):
            raise SetupError("--token has a sign that no token can have, like a line break or an accent: copy it again")
        self._http.headers["Authorization"] = f"Bearer {token}"

    def user(self) -> dict[str, Any]:
        reply = self._send("GET", "/api/v1/auths/")
        if reply.status_code in (401, 403):
            raise SetupError("Open WebUI refuses the token: sign in with --email, or make a new API key")
        return self._wanted(reply, "who is asking", dict)

    def function(self, function_id: str) -> dict[str, Any] | None:
        """The function, or None if there is none of this id."""
        functions = self._wanted(self._send("GET", "/api/v1/functions/"), "the list of functions", list)
        if not any(function.get("id") == function_id for function in functions):
            return None
        return self._wanted(self._send("GET", f"/api/v1/functions/id/{function_id}"), "the function", dict)

    def create(self, function: dict[str, Any]) -> None:
        self._wanted(self._send("POST", "/api/v1/functions/create", function), "to create the function", dict)

    def update(self, function: dict[str, Any]) -> None:
        path = f"/api/v1/functions/id/{function['id']}/update"
        self._wanted(self._send("POST", path, function), "to update the function", dict)

    def enable(self, function_id: str) -> None:
        path = f"/api/v1/functions/id/{function_id}/toggle"
        self._wanted(self._send("POST", path, {}), "to enable the function", dict)

    def valves(self, function_id: str) -> dict[str, Any]:
        reply = self._send("GET", f"/api/v1/functions/id/{function_id}/valves")
        return self._wanted(reply, "the valves", dict | None) or {}

    def set_valves(self, function_id: str, valves: dict[str, Any]) -> None:
        path = f"/api/v1/functions/id/{function_id}/valves/update"
        self._wanted(self._send("POST", path, valves), "to set the valves", dict | None)

    def models(self) -> list[dict[str, Any]]:
        what = "the list of models"
        found = self._wanted(self._send("GET", "/api/models?refresh=true"), what, dict).get("data")
        if not isinstance(found, list):
            raise self._stranger(what)
        return cast(list[dict[str, Any]], found)

    def share(self, model_id: str, name: str) -> Shared:
        """Let every user choose a model. An entry that is there already is left as it is."""
        reply = self._send("GET", f"/api/v1/models/model?id={quote(model_id, safe='')}")
        if reply.status_code == 200 and (entry := _object(reply)):
            return Shared.BEFORE if _is_public(entry) else Shared.NOT
        model: dict[str, Any] = {
            "id": model_id,
            "base_model_id": None,
            "name": name,
            "meta": {},
            "params": {},
            "access_grants": [EVERYBODY],
        }
        self._wanted(self._send("POST", "/api/v1/models/create", model), f"to share {name}", dict | None)
        return Shared.NOW

    def _send(self, method: str, path: str, body: dict[str, Any] | None = None) -> httpx.Response:
        try:
            return self._http.request(method, path, json=body)
        except httpx.LocalProtocolError:  # its words may hold the token
            raise SetupError("no request can carry this: are --url and --token right?") from None
        except httpx.HTTPError as error:
            raise SetupError(f"Open WebUI cannot be reached at {self.url}: {error}. Is it running?") from error

    def _wanted(self, reply: httpx.Response, what: str, kind: type | UnionType) -> Any:
        """The JSON of an answer. Open WebUI has its page, with status 200, for every GET that it does not know."""
        if reply.status_code in (401, 403):
            raise SetupError(f"Open WebUI refuses {what}: only an administrator may do this")
        if reply.status_code >= 400:
            raise SetupError(f"Open WebUI refuses {what}: {_reason(reply)}")
        try:
            found: Any = reply.json()
        except ValueError:
            raise self._stranger(what) from None
        if not isinstance(found, kind):
            raise self._stranger(what)
        return found

    def _stranger(self, what: str) -> SetupError:
        return SetupError(
            f"{self.url} does not answer like Open WebUI when asked for {what.removeprefix('to ')}: is the address "
            "right, and does a proxy in front of it let /api through?"
        )


def _object(reply: httpx.Response) -> dict[str, Any]:
    try:
        found: Any = reply.json()
    except ValueError:
        return {}
    return cast(dict[str, Any], found) if isinstance(found, dict) else {}


def _reason(reply: httpx.Response) -> str:
    return str(_object(reply).get("detail") or f"status {reply.status_code}")


def _is_public(entry: dict[str, Any]) -> bool:
    """Older versions have no list of grants: there nothing means everybody."""
    if "access_grants" not in entry:
        return entry.get("access_control") is None
    grants: list[dict[str, Any]] = entry["access_grants"] or []
    return any(all(grant.get(key) == value for key, value in EVERYBODY.items()) for grant in grants)
