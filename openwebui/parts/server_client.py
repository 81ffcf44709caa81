"""The HTTP client for the Limelight server. All requests of the pipe go through it."""

import asyncio
import contextlib
import functools
import json
import os
import ssl
from collections.abc import AsyncGenerator
from typing import Any
from urllib.parse import quote, urlsplit

import httpx

from openwebui.parts.frames import Json, as_object
from openwebui.parts.valves import Valves

TRANSIENT_STATUSES = (502, 503, 504)
"""Status codes that a proxy returns while the server behind it restarts."""


class RequestRefused(Exception):
    """The error for a response with an error status."""

    def __init__(self, status: int, problem: Json) -> None:
        super().__init__(str(problem.get("detail") or problem.get("title") or f"status {status}"))
        self.status = status
        self.code = str(problem.get("code", ""))


class ConnectionLost(Exception):
    """The error for a server that cannot be reached or is not Limelight. Its text is shown in the chat."""


class LimelightClient:
    """Sends requests for one user during one call of the pipe. `run_id` is the id of the run, "" until it is known.

    `is_starting` is True while the request that starts the run has no response, so a run without a known id may exist.
    `is_stopping` is True after Stop: no further request may start a run."""

    def __init__(self, valves: Valves, user: Json) -> None:
        self.url = valves.DEEP_AGENT_URL.rstrip("/")
        self.run_id = ""
        self.is_starting = False
        self.is_stopping = False
        self.command_user = f" --user {user.get('id') or ''}" if valves.API_KEY else ""
        """The option by which a `limelight` command acts for this user."""
        self._valves = valves
        self._user = user
        self._http: httpx.AsyncClient | None = None

    async def __aenter__(self) -> "LimelightClient":
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._http is not None:
            await self._http.aclose()

    async def request_json(self, method: str, path: str, body: Json | None = None, seconds: float = 10) -> Any:
        """Send a request and return the JSON of the response. Raises RequestRefused and ConnectionLost."""
        http = await self._connect()
        try:
            response = await http.request(method, f"{self.url}{path}", timeout=seconds, **encode_request(body))
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise ConnectionLost(f"{self.url} cannot be reached ({error_reason(error)})") from error
        if response.status_code >= 400:
            refused = RequestRefused(response.status_code, parse_problem(response.content))
            if refused.status in TRANSIENT_STATUSES:
                raise ConnectionLost(f"{self.url} cannot be reached ({refused})")
            raise refused
        try:
            return response.json()
        except ValueError as error:
            raise self._not_limelight(response) from error

    async def download(self, path: str, limit: int) -> bytes | None:
        """Download a resource of the server. Return its body, None if it exceeds the limit or the request fails."""
        body = bytearray()
        try:
            http = await self._connect()
            async with http.stream("GET", join_url(self.url, path), timeout=30) as response:
                if response.status_code != 200:
                    return None
                async for chunk in response.aiter_bytes():
                    body += chunk
                    if len(body) > limit:
                        return None
        except (httpx.HTTPError, httpx.InvalidURL, ConnectionLost):
            return None
        return bytes(body)

    async def download_object(self, path: str, limit: int) -> Json:
        """Download a JSON object. Return an empty one if it exceeds the limit or the request fails."""
        try:
            return as_object(json.loads(await self.download(path, limit) or b"{}"))
        except ValueError:
            return {}

    @contextlib.asynccontextmanager
    async def open_stream(self, path: str, body: Json | None, cursor: str) -> AsyncGenerator[httpx.Response, None]:
        """Open an event stream with POST if there is a body, otherwise with GET. It begins after the cursor.

        Status 204 means that the run has ended and nothing follows the cursor.
        Raises RequestRefused, ConnectionLost and the errors of httpx."""
        method = "GET" if body is None else "POST"
        http = await self._connect()
        async with http.stream(method, f"{self.url}{path}", **encode_request(body, cursor)) as response:
            if response.status_code >= 400:
                raise RequestRefused(response.status_code, parse_problem(await response.aread()))
            media_type = response.headers.get("content-type", "").partition(";")[0].strip().lower()
            if response.status_code != 204 and (response.status_code, media_type) != (200, "text/event-stream"):
                raise self._not_limelight(response)
            yield response

    def _not_limelight(self, response: httpx.Response) -> ConnectionLost:
        media_type = response.headers.get("content-type", "no content type")
        answer = f"{self.url} does not answer like a Limelight server (status {response.status_code}, {media_type})"
        return ConnectionLost(f"{answer}: is the valve DEEP_AGENT_URL right?")

    async def _connect(self) -> httpx.AsyncClient:
        """Return the HTTP client. It is created with the first request, so that invalid valves fail like a request."""
        if self._http is None:
            headers = request_headers(self._valves, self._user)
            try:
                verify = await ssl_verification(self.url)
            except OSError as error:
                raise ConnectionLost(f"SSL_CERT_FILE or SSL_CERT_DIR of Open WebUI cannot be read: {error}") from error
            timeout = httpx.Timeout(10, read=self._valves.REQUEST_TIMEOUT)
            # The proxies of the environment are for the internet; the Limelight server is on the local network.
            self._http = httpx.AsyncClient(headers=headers, timeout=timeout, verify=verify, trust_env=False)
        return self._http


def request_headers(valves: Valves, user: Json) -> dict[str, str]:
    """Return the headers with the API key and the user. Without a key, no user is sent, as the server would ignore it.

    Raises ConnectionLost for an invalid key; the text does not contain the key."""
    key = valves.API_KEY
    if not key:
        return {}
    if not (key.isascii() and key.isprintable()):
        raise ConnectionLost(
            "The valve API_KEY of the Deep Agent Pipe contains a character that no key can have, such as a line break, "
            "an accent or a typographic quotation mark: enter the key again."
        )
    return {
        "Authorization": f"Bearer {key}",
        "X-Limelight-User-Id": quote(str(user.get("id") or ""), safe="", errors="replace"),
        "X-Limelight-User-Name": quote(str(user.get("name") or ""), safe="", errors="replace"),
    }


def encode_request(body: Json | None, cursor: str = "") -> Json:
    """Return the content and headers of a request, as arguments for httpx.

    Lone surrogates, which JSON allows and UTF-8 does not, are replaced. Otherwise every later turn would fail."""
    headers = {"Last-Event-ID": cursor} if cursor else {}
    if body is None:
        return {"headers": headers}
    content = json.dumps(body, ensure_ascii=False).encode(errors="replace")
    return {"content": content, "headers": {**headers, "Content-Type": "application/json"}}


def parse_problem(body: bytes) -> Json:
    """Return the problem details of an error response; an empty object if it is not JSON, as from a proxy."""
    try:
        return as_object(json.loads(body))
    except ValueError:
        text = body[:300].decode(errors="replace").strip()
    return {} if text.startswith("<") else {"detail": text}


def join_url(base_url: str, path: str) -> str:
    """Return the URL of a path that the server has sent.

    If the base URL has a path, as in `https://host/limelight`, the server's paths may begin with it or not."""
    root = urlsplit(base_url).path.rstrip("/")
    return base_url + (path.removeprefix(root) if path.startswith(f"{root}/") else path)


async def ssl_verification(url: str) -> ssl.SSLContext | bool:
    """Return the `verify` argument for httpx. Raises OSError if the environment names unreadable certificates."""
    if not url.startswith("https:"):
        return False
    names = os.environ.get("SSL_CERT_FILE", ""), os.environ.get("SSL_CERT_DIR", "")
    return await asyncio.to_thread(load_certificates, *names)


@functools.cache
def load_certificates(_file: str, _folder: str) -> ssl.SSLContext:
    """Load the certificates that the environment names, and cache them, because loading takes 0.1 s.

    The arguments are only cache keys: httpx reads the environment itself.
    """
    return httpx.create_ssl_context(verify=True, trust_env=True)


def error_reason(error: Exception) -> str:
    """Return a short description of a failed request. The text of a LocalProtocolError is replaced, as it may contain
    the key."""
    reasons = {"ConnectError": "no connection", "ConnectTimeout": "no answer", "ReadTimeout": "no data"}
    reasons["LocalProtocolError"] = "a valve contains a character that no request can have"
    return reasons.get(type(error).__name__, str(error) or type(error).__name__)


def error_message(error: Exception) -> str:
    """Return an error message for the chat: what failed, and how to fix it."""
    if isinstance(error, RequestRefused):
        if error.status == 401:
            return "The Limelight server refuses the key: set the valve API_KEY of the Deep Agent Pipe."
        if error.status == 403:
            return f"The Limelight server refuses this machine: {error}"
        if error.status == 413:
            return (
                "This chat is too long for the Limelight server: start a new one, or send less at once. An "
                "administrator can raise LIMELIGHT_BODY_BYTES there, and the limit of a proxy in front of it."
            )
        return f"The Limelight server says: {error}"
    return str(error)
