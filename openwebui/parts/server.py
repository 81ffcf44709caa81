"""The Limelight server, as one user sees it during one call of the pipe. The only part that talks to it."""

import asyncio
import contextlib
import json
import time
from collections.abc import AsyncGenerator, AsyncIterator
from typing import Any
from urllib.parse import quote

import httpx

from openwebui.parts.frames import Frame, frames_of
from openwebui.parts.values import Json, as_object
from openwebui.parts.valves import Valves

FIRST_PAUSE = 0.5
"""Seconds before a lost connection is tried again; the longer it is away, the longer the pauses."""


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
        self.patience = valves.RECONNECT_SECONDS
        self.run_id = ""
        self.session_id = ""
        headers: dict[str, str] = {}
        if valves.API_KEY:
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

    async def follow(self, request: Json) -> AsyncIterator[Frame]:
        """Begin a run and follow it to its end. A lost connection is taken up again behind the last frame."""
        cursor, lost_at, ended = "", 0.0, False
        while not ended:
            reason = "the stream ended early"
            try:
                async with self._open(request, cursor) as response:
                    if response.status_code == 204:  # it ended, and all of it is here
                        return
                    self.run_id = response.headers.get("x-run-id", self.run_id)
                    self.session_id = response.headers.get("x-session-id", self.session_id)
                    if lost_at:
                        yield Frame("_found", {})
                    async for frame in frames_of(response.aiter_bytes()):
                        lost_at, cursor, ended = 0.0, frame.cursor or cursor, frame.type == "done"
                        yield frame
            except (httpx.InvalidURL, httpx.UnsupportedProtocol) as error:  # waiting will not mend it
                raise Lost(self._farewell(str(error))) from error
            except httpx.HTTPError as error:
                reason = describe(error)
            except Refused as refused:
                if refused.status not in (502, 503, 504) or not (self.run_id or lost_at):
                    raise
                reason = str(refused)
            if not ended:
                lost_at = lost_at or time.monotonic()
                if time.monotonic() - lost_at >= self.patience:
                    raise Lost(self._farewell(reason))
                yield Frame("_lost", {"reason": reason})
                await asyncio.sleep(min(5.0, FIRST_PAUSE + (time.monotonic() - lost_at) / 4))

    @contextlib.asynccontextmanager
    async def _open(self, request: Json, cursor: str) -> AsyncGenerator[httpx.Response, None]:
        # The request id makes a second POST safe: it gives the first one's run.
        if not self.run_id:
            opened = self._http.stream("POST", f"{self.url}/chat/stream", json=request)
        else:
            headers = {"Last-Event-ID": cursor} if cursor else {}
            url = f"{self.url}/runs/{self.run_id}/stream?format=typed"
            opened = self._http.stream("GET", url, headers=headers)
        async with opened as response:
            if response.status_code >= 400:
                raise Refused(response.status_code, problem_of(await response.aread()))
            yield response

    def _farewell(self, reason: str) -> str:
        if self.run_id:
            return f"The connection to {self.url} was lost ({reason}). The agent may still be at work there."
        hint = "Is it running, and is the valve DEEP_AGENT_URL right?"
        return f"The Limelight server at {self.url} cannot be reached ({reason}). {hint}"


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
