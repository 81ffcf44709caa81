"""HTTP as the client needs it: a request with the caller's key and name, an answer as a value or as an error.

It must not know streams' content or what to try again; `client` and `resuming` are the callers. Trouble with the
connection becomes ConnectionLost in `call`, and stays httpx's own error in `open`, whose callers try again.
"""

import ipaddress
from collections.abc import Mapping
from typing import Any, TypeVar
from urllib.parse import quote, urlsplit

import httpx
import msgspec

from limelight.client.errors import ClientError, ConnectionLost, refusal

T = TypeVar("T")
STREAM_HEADERS = {"accept": "text/event-stream", "accept-encoding": "identity", "cache-control": "no-store"}


class Wire:
    """One server, one caller."""

    def __init__(self, url: str, key: str, user_id: str, user_name: str, timeout: float) -> None:
        self.url = url.rstrip("/")
        self.timeout = timeout
        self.headers = headers = {"authorization": f"Bearer {key}"} if key else {}
        if user_id:
            headers["x-limelight-user-id"] = quote(user_id, safe="")
        if user_name:
            headers["x-limelight-user-name"] = quote(user_name, safe="")
        self.trusts_environment = not _is_here(self.url)
        """A proxy of the environment is for the world outside."""
        self._http = httpx.AsyncClient(
            headers=headers,
            timeout=timeout,
            trust_env=self.trusts_environment,
            # Certificates that SSL_CERT_FILE names are good for this machine too.
            verify=httpx.create_ssl_context() if self.url.startswith("https:") else True,
            # A stream keeps its connection, so none is too many.
            limits=httpx.Limits(max_connections=None, max_keepalive_connections=20),
        )

    @property
    def closed(self) -> bool:
        return self._http.is_closed

    async def aclose(self) -> None:
        await self._http.aclose()

    async def call(self, method: str, path: str, type_: type[T], *, params: Any = None, body: Any = None) -> T:
        """A request whose answer is JSON of this shape."""
        answer = await self.bytes(method, path, params=params, body=body)
        try:
            return msgspec.json.decode(answer, type=type_)
        except msgspec.DecodeError as error:
            raise self.foreign(f"its answer to {method} {path} is not what was expected: {error}") from error

    async def bytes(self, method: str, path: str, *, params: Any = None, body: Any = None) -> bytes:
        """A request whose answer is taken as it is. One that only reads is tried twice."""
        request = self._request(method, path, params, body, {})
        try:
            try:
                response = await self._send(request)
            except (httpx.ReadError, httpx.RemoteProtocolError):  # a kept connection that the server had just left
                if method != "GET":
                    raise
                response = await self._send(request)
        except httpx.TransportError as error:
            raise self.lost(error) from error
        if not response.is_success:
            raise refusal(response.status_code, response.content)
        return response.content

    async def open(
        self, method: str, path: str, *, params: Any = None, body: Any = None, headers: Mapping[str, str]
    ) -> httpx.Response | None:
        """A stream, to be closed by the caller; None if the server says that there is nothing more (204)."""
        request = self._request(method, path, params, body, {**STREAM_HEADERS, **headers})
        response = await self._send(request, stream=True)
        try:
            if response.status_code == 204:
                await response.aclose()
                return None
            if response.status_code != 200:
                raise refusal(response.status_code, await response.aread())
            if not response.headers.get("content-type", "").startswith("text/event-stream"):
                raise self.foreign(f"{path} is no stream there")
        except BaseException:
            await response.aclose()
            raise
        return response

    def lost(self, error: Exception) -> ConnectionLost:
        """The connection's trouble in our words."""
        return ConnectionLost(f"{self.url} does not answer: {error or type(error).__name__}")

    def foreign(self, what: str) -> ClientError:
        return ClientError(f"{self.url} does not seem to be a Limelight server: {what}", code="not_limelight")

    def gone(self) -> ConnectionLost:
        return ConnectionLost("the client is closed")

    def no_address(self, why: object = "it has to begin with http:// or https://") -> ClientError:
        return ClientError(f"{self.url!r} is no address: {why}")

    def _request(self, method: str, path: str, params: Any, body: Any, headers: Mapping[str, str]) -> httpx.Request:
        content, headers = None, dict(headers)
        if body is not None:
            content = msgspec.json.encode(body)
            headers["content-type"] = "application/json"
        try:
            return self._http.build_request(method, self.url + path, params=params, content=content, headers=headers)
        except httpx.InvalidURL as error:
            raise self.no_address(error) from error

    async def _send(self, request: httpx.Request, *, stream: bool = False) -> httpx.Response:
        if self.closed:
            raise self.gone()
        try:
            return await self._http.send(request, stream=stream)
        except httpx.UnsupportedProtocol as error:
            raise self.no_address() from error


def part(text: str) -> str:
    """An id as one part of a path, whatever is in it."""
    return quote(text, safe="") if text.strip(".") else text.replace(".", "%2E")


def _is_here(url: str) -> bool:
    try:
        host = urlsplit(url).hostname or ""
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
