"""The Limelight server, as one user sees it during one call of the pipe. The only part that talks to it."""

import contextlib
import json
from collections.abc import AsyncGenerator
from typing import Any

import httpx

from openwebui.parts.certificates import trust
from openwebui.parts.headers import Unusable, headers_of
from openwebui.parts.json_body import content_of, problem_of
from openwebui.parts.links import located
from openwebui.parts.types import Json, as_object
from openwebui.parts.valves import Valves

PASSING = (502, 503, 504)
"""What a proxy says while the server behind it starts again."""


class Refused(Exception):
    """The server answered, and the answer was no."""

    def __init__(self, status: int, problem: Json) -> None:
        super().__init__(str(problem.get("detail") or problem.get("title") or f"status {status}"))
        self.status = status
        self.code = str(problem.get("code", ""))
        self.problem = problem


class Lost(Exception):
    """The server cannot be reached, or not any more."""


class Server:
    """A Limelight server, as one user sees it during one call of the pipe."""

    def __init__(self, valves: Valves, user: Json) -> None:
        self.url = valves.DEEP_AGENT_URL.rstrip("/")
        self.run_id = ""
        self.as_user = f" --user {user.get('id') or ''}" if valves.API_KEY else ""
        """How a command at a terminal says for whom it acts."""
        self._valves = valves
        self._user = user
        self._http: httpx.AsyncClient | None = None

    async def __aenter__(self) -> "Server":
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._http is not None:
            await self._http.aclose()

    async def call(self, method: str, path: str, body: Json | None = None, seconds: float = 10) -> Any:
        """One call. Raises Refused and Lost."""
        http = await self._client()
        try:
            response = await http.request(method, f"{self.url}{path}", timeout=seconds, **content_of(body))
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise Lost(f"{self.url} cannot be reached ({describe(error)})") from error
        if response.status_code >= 400:
            refused = Refused(response.status_code, problem_of(response.content))
            if refused.status in PASSING:
                raise Lost(f"{self.url} cannot be reached ({refused})")
            raise refused
        try:
            return response.json()
        except ValueError as error:
            raise self._stranger(response) from error

    async def fetch(self, path: str, limit: int) -> bytes | None:
        """The body of a GET, or None if it is over the limit or cannot be had."""
        found = bytearray()
        try:
            http = await self._client()
            async with http.stream("GET", located(self.url, path), timeout=30) as response:
                if response.status_code != 200:
                    return None
                async for piece in response.aiter_bytes():
                    found += piece
                    if len(found) > limit:
                        return None
        except (httpx.HTTPError, httpx.InvalidURL, Lost):
            return None
        return bytes(found)

    async def fetch_object(self, path: str, limit: int) -> Json:
        """The same as a JSON object; an empty one if it cannot be had."""
        try:
            return as_object(json.loads(await self.fetch(path, limit) or b"{}"))
        except ValueError:
            return {}

    @contextlib.asynccontextmanager
    async def open(self, path: str, body: Json | None, cursor: str) -> AsyncGenerator[httpx.Response, None]:
        """A stream: POST if there is a body, else GET behind the cursor; status 204 is one that is over.

        Raises Refused and Lost, and what httpx raises."""
        method = "GET" if body is None else "POST"
        http = await self._client()
        async with http.stream(method, f"{self.url}{path}", **content_of(body, cursor)) as response:
            if response.status_code >= 400:
                raise Refused(response.status_code, problem_of(await response.aread()))
            kind = response.headers.get("content-type", "").partition(";")[0].strip().lower()
            if response.status_code != 204 and (response.status_code, kind) != (200, "text/event-stream"):
                raise self._stranger(response)
            yield response

    def _stranger(self, response: httpx.Response) -> Lost:
        kind = response.headers.get("content-type", "no content type")
        says = f"{self.url} does not answer like a Limelight server (status {response.status_code}, {kind})"
        return Lost(f"{says}: is the valve DEEP_AGENT_URL right?")

    async def _client(self) -> httpx.AsyncClient:
        """Made when it is needed, because what is wrong with a valve is told like all that goes wrong. Raises Lost."""
        if self._http is None:
            try:
                headers, verify = headers_of(self._valves, self._user), await trust(self.url)
            except Unusable as error:
                raise Lost(f"The Limelight server cannot be asked: {error}.") from error
            except OSError as error:
                raise Lost(f"SSL_CERT_FILE or SSL_CERT_DIR of Open WebUI cannot be read: {error}") from error
            timeout = httpx.Timeout(10, read=self._valves.REQUEST_TIMEOUT)
            # Proxies of the environment are for the internet; the agents' server is a neighbour.
            self._http = httpx.AsyncClient(headers=headers, timeout=timeout, verify=verify, trust_env=False)
        return self._http


def describe(error: Exception) -> str:
    """In words for a chat. What is wrong with a header is not told: the words would hold the key."""
    names = {"ConnectError": "no connection", "ConnectTimeout": "no answer", "ReadTimeout": "no sign of life"}
    names["LocalProtocolError"] = "a valve holds what no request can carry"
    return names.get(type(error).__name__, str(error) or type(error).__name__)


def advice(error: Exception) -> str:
    """What went wrong, and what to do about it."""
    if isinstance(error, Refused):
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
