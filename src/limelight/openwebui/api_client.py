"""A client for the part of Open WebUI's API that installs the pipe. Every error says how to fix it."""

from enum import Enum
from types import UnionType
from typing import Any, Self, cast
from urllib.parse import quote

import httpx

from limelight.errors import SetupError

VERSION_PATH = "/api/version"
TIMEOUT_SECONDS = 60
"""Timeout of a request. It is long, because Open WebUI is slow after its start and executes each saved function."""

READ_GRANT_FOR_ALL = {"principal_type": "user", "principal_id": "*", "permission": "read"}


class ShareResult(Enum):
    """The result of sharing a model with all users."""

    SHARED = "shared"
    WAS_PUBLIC = "was public"
    IS_RESTRICTED = "is restricted"
    """Result of `share`: the model is not shared, because an administrator has configured who may use it."""


class OpenWebUI:
    """A client of Open WebUI's API that acts as one user."""

    def __init__(self, url: str) -> None:
        self.url = url.rstrip("/")
        try:
            self._http = httpx.Client(base_url=self.url, timeout=TIMEOUT_SECONDS, follow_redirects=True)
        except (httpx.InvalidURL, ValueError) as error:
            raise SetupError(f"--url is not a valid address: {error}") from error

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._http.close()

    def version(self) -> str:
        """Return the version of Open WebUI. If its address redirects, use the new address from now on.

        A redirect would turn a later POST into a GET.
        """
        reply = self._send("GET", VERSION_PATH)
        version = _object(reply).get("version")
        if reply.status_code != 200 or not version:
            raise SetupError(f"{self.url} does not respond like Open WebUI: check the address")
        self._follow_redirect(str(reply.url))
        return str(version)

    def _follow_redirect(self, final_url: str) -> None:
        url = final_url.removesuffix(VERSION_PATH)
        if not final_url.endswith(VERSION_PATH) or url == str(self._http.base_url).rstrip("/"):
            return
        if self.url.startswith("https:") and not url.startswith("https:"):
            raise SetupError(f"{self.url} redirects to {url}, which would send the token without encryption")
        self.url = url
        self._http.base_url = url

    def sign_in(self, email: str, password: str) -> None:
        reply = self._send("POST", "/api/v1/auths/signin", {"email": email, "password": password})
        if reply.status_code != 200:
            raise SetupError(f"Open WebUI refused the sign-in of {email}: {_reason(reply)}")
        token = _object(reply).get("token")
        if not isinstance(token, str):
            raise self._not_open_webui("the sign-in")
        self.use_token(token)

    def use_token(self, token: str) -> None:
        token = token.strip()
        if not (token.isascii() and token.isprintable()):
            raise SetupError(
                "--token has a character that is invalid in a token, such as a line break: copy the token again"
            )
        self._http.headers["Authorization"] = f"Bearer {token}"

    def user(self) -> dict[str, Any]:
        reply = self._send("GET", "/api/v1/auths/")
        if reply.status_code in (401, 403):
            raise SetupError("Open WebUI refuses the token: sign in with --email, or make a new API key")
        return self._checked(reply, "the user of the token", dict)

    def function(self, function_id: str) -> dict[str, Any] | None:
        """Return the function with this id, or None."""
        functions = self._checked(self._send("GET", "/api/v1/functions/"), "the list of functions", list)
        if not any(function.get("id") == function_id for function in functions):
            return None
        return self._checked(self._send("GET", f"/api/v1/functions/id/{function_id}"), "the function", dict)

    def create(self, function: dict[str, Any]) -> None:
        self._checked(self._send("POST", "/api/v1/functions/create", function), "to create the function", dict)

    def update(self, function: dict[str, Any]) -> None:
        path = f"/api/v1/functions/id/{function['id']}/update"
        self._checked(self._send("POST", path, function), "to update the function", dict)

    def enable(self, function_id: str) -> None:
        path = f"/api/v1/functions/id/{function_id}/toggle"
        self._checked(self._send("POST", path, {}), "to enable the function", dict)

    def valves(self, function_id: str) -> dict[str, Any]:
        reply = self._send("GET", f"/api/v1/functions/id/{function_id}/valves")
        return self._checked(reply, "the valves", dict | None) or {}

    def set_valves(self, function_id: str, valves: dict[str, Any]) -> None:
        path = f"/api/v1/functions/id/{function_id}/valves/update"
        self._checked(self._send("POST", path, valves), "to set the valves", dict | None)

    def models(self) -> list[dict[str, Any]]:
        what = "the list of models"
        models = self._checked(self._send("GET", "/api/models?refresh=true"), what, dict).get("data")
        if not isinstance(models, list):
            raise self._not_open_webui(what)
        return cast(list[dict[str, Any]], models)

    def share(self, model_id: str, name: str) -> ShareResult:
        """Share a model with all users, unless Open WebUI has an entry for the model already."""
        reply = self._send("GET", f"/api/v1/models/model?id={quote(model_id, safe='')}")
        if reply.status_code == 200 and (entry := _object(reply)):
            return ShareResult.WAS_PUBLIC if _is_public(entry) else ShareResult.IS_RESTRICTED
        model: dict[str, Any] = {
            "id": model_id,
            "base_model_id": None,
            "name": name,
            "meta": {},
            "params": {},
            "access_grants": [READ_GRANT_FOR_ALL],
        }
        self._checked(self._send("POST", "/api/v1/models/create", model), f"to share {name}", dict | None)
        return ShareResult.SHARED

    def _send(self, method: str, path: str, body: dict[str, Any] | None = None) -> httpx.Response:
        try:
            return self._http.request(method, path, json=body)
        except httpx.LocalProtocolError:  # the text of the error may contain the token
            raise SetupError("--url or --token has characters that HTTP does not allow: are they right?") from None
        except httpx.HTTPError as error:
            raise SetupError(f"Open WebUI cannot be reached at {self.url}: {error}. Is it running?") from error

    def _checked(self, reply: httpx.Response, what: str, kind: type | UnionType) -> Any:
        """Check the type of a response's JSON and return it. Open WebUI answers unknown GETs with an HTML page."""
        if reply.status_code in (401, 403):
            raise SetupError(f"Open WebUI refuses {what}: only an administrator may do this")
        if reply.status_code >= 400:
            raise SetupError(f"Open WebUI refuses {what}: {_reason(reply)}")
        try:
            value: Any = reply.json()
        except ValueError:
            raise self._not_open_webui(what) from None
        if not isinstance(value, kind):
            raise self._not_open_webui(what)
        return value

    def _not_open_webui(self, what: str) -> SetupError:
        return SetupError(
            f"{self.url} does not answer like Open WebUI when asked for {what.removeprefix('to ')}: is the address "
            "right, and does a proxy in front of it let /api through?"
        )


def _object(reply: httpx.Response) -> dict[str, Any]:
    try:
        value: Any = reply.json()
    except ValueError:
        return {}
    return cast(dict[str, Any], value) if isinstance(value, dict) else {}


def _reason(reply: httpx.Response) -> str:
    return str(_object(reply).get("detail") or f"status {reply.status_code}")


def _is_public(entry: dict[str, Any]) -> bool:
    """Whether all users may read a model: it has a read grant for all or, in older versions, no access control."""
    if "access_grants" not in entry:
        return entry.get("access_control") is None
    grants: list[dict[str, Any]] = entry["access_grants"] or []
    return any(all(grant.get(key) == value for key, value in READ_GRANT_FOR_ALL.items()) for grant in grants)
