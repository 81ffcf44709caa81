"""The Limelight server, as one user sees it during one call of the pipe. The only part that talks to it."""

import contextlib
import json
from collections.abc import AsyncGenerator
from typing import Any
from urllib.parse import quote

import httpx

from openwebui.parts.values import Json, as_object
from openwebui.parts.valves import Valves


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
        headers: dict[str, str] = {}
        self.as_user = ""
        """How a command at a terminal says for whom it acts."""
        if valves.API_KEY:
            self.as_user = f" --user {user.get('id') or ''}"
            headers["Authorization"] = f"Bearer {valves.API_KEY}"
            headers["X-Limelight-User-Id"] = quote(str(user.get("id") or ""), safe="")
            headers["X-Limelight-User-Name"] = quote(str(user.get("name") or ""), safe="")
        timeout = httpx.Timeout(10, read=valves.REQUEST_TIMEOUT)
        # Certificates are read only for https: that takes a tenth of a second, in which Open WebUI serves nobody.
        secure = self.url.startswith("https:")
        # Proxies of the environment are for the internet; the agents' server is a neighbour.
        self._http = httpx.AsyncClient(headers=headers, timeout=timeout, verify=secure, trust_env=False)

    async def __aenter__(self) -> "Server":
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._http.aclose()

    async def call(self, method: str, path: str, body: Json | None = None, seconds: float = 10) -> Any:
        """One call. Raises Refused and Lost."""
        try:
            response = await self._http.request(method, f"{self.url}{path}", json=body, timeout=seconds)
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise Lost(f"{self.url} cannot be reached ({describe(error)})") from error
        if response.status_code >= 400:
            raise Refused(response.status_code, problem_of(response.content))
        try:
            return response.json()
        except ValueError as error:
            raise Lost(f"{self.url} does not answer like a Limelight server") from error

    async def fetch(self, path: str, limit: int) -> bytes | None:
        """The body of a GET, or None if it is over the limit or cannot be had."""
        found = bytearray()
        try:
            async with self._http.stream("GET", f"{self.url}{path}", timeout=30) as response:
                if response.status_code != 200:
                    return None
                async for piece in response.aiter_bytes():
                    found += piece
                    if len(found) > limit:
                        return None
        except (httpx.HTTPError, httpx.InvalidURL):
            return None
        return bytes(found)

    @contextlib.asynccontextmanager
    async def open(self, path: str, body: Json | None, cursor: str) -> AsyncGenerator[httpx.Response, None]:
        """A stream: POST if there is a body, else GET behind the cursor. Raises Refused, and what httpx raises."""
        headers = {"Last-Event-ID": cursor} if cursor else {}
        method = "GET" if body is None else "POST"
        async with self._http.stream(method, f"{self.url}{path}", json=body, headers=headers) as response:
            if response.status_code >= 400:
                raise Refused(response.status_code, problem_of(await response.aread()))
            yield response


def problem_of(body: bytes) -> Json:
    try:
        found = as_object(json.loads(body))
    except ValueError:
        found = {}
    return found or {"detail": body[:300].decode(errors="replace")}


def describe(error: Exception) -> str:
    names = {"ConnectError": "no connection", "ConnectTimeout": "no answer", "ReadTimeout": "no sign of life"}
    return names.get(type(error).__name__, str(error) or type(error).__name__)


def advice(error: Exception) -> str:
    """What went wrong, and what to do about it."""
    if isinstance(error, Refused):
        if error.status == 401:
            return "The Limelight server refuses the key: set the valve API_KEY of the Deep Agent Pipe."
        if error.status == 403:
            return f"The Limelight server refuses this machine: {error}"
        return f"The Limelight server says: {error}"
    return str(error)
