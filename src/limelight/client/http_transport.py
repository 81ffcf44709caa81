"""Sends HTTP requests with the caller's key and name. Responses become values or client errors.

`request` and `request_json` turn connection failures into ConnectionLost. `open_stream` leaves them as httpx errors,
because its callers retry. This module does not parse streams and retries only a GET whose kept-alive connection
was closed.
"""

import ipaddress
import ssl
from typing import Any, TypeVar
from urllib.parse import quote, urlsplit

import httpx
import msgspec

from limelight.client.errors import ClientError, ConnectionLost, error_from_response

T = TypeVar("T")
STREAM_HEADERS = {"accept": "text/event-stream", "accept-encoding": "identity", "cache-control": "no-store"}
RECORDS = {"format": "records"}


class Transport:
    """Sends the HTTP requests of one client to one server."""

    def __init__(self, url: str, key: str, user_id: str, user_name: str, timeout: float) -> None:
        self.url = url.rstrip("/")
        self.timeout = timeout
        self.headers = headers = {"authorization": f"Bearer {key}"} if key else {}
        if user_id:
            headers["x-limelight-user-id"] = quote(user_id, safe="")
        if user_name:
            headers["x-limelight-user-name"] = quote(user_name, safe="")
        self.trust_env = not _is_loopback(self.url)
        """Whether proxies from the environment are used: not for a server on this machine."""
        self._http = httpx.AsyncClient(
            headers=headers,
            timeout=timeout,
            trust_env=self.trust_env,
            verify=_ssl_context(self.url),
            # Each stream occupies a connection, so the number of connections is not limited.
            limits=httpx.Limits(max_connections=None, max_keepalive_connections=20),
        )

    @property
    def closed(self) -> bool:
        return self._http.is_closed

    async def aclose(self) -> None:
        await self._http.aclose()

    async def request_json(self, method: str, path: str, type_: type[T], *, params: Any = None, body: Any = None) -> T:
        """Send a request and decode its JSON response as `type_`."""
        content = await self.request(method, path, params=params, body=body)
        try:
            return msgspec.json.decode(content, type=type_)
        except msgspec.DecodeError as error:
            raise self.not_limelight(f"its answer to {method} {path} is not what was expected: {error}") from error

    async def request(self, method: str, path: str, *, params: Any = None, body: Any = None) -> bytes:
        """Send a request and return the body of its response."""
        request = self._build(method, path, params, body)
        try:
            try:
                response = await self._send(request)
            except (httpx.ReadError, httpx.RemoteProtocolError):  # the server closed a kept-alive connection
                if method != "GET":
                    raise
                response = await self._send(request)
        except httpx.TransportError as error:
            raise self.connection_lost(error) from error
        if not response.is_success:
            raise error_from_response(response.status_code, response.content)
        return response.content

    async def open_stream(
        self, method: str, path: str, *, body: Any = None, after: int | None = None
    ) -> httpx.Response | None:
        """Open a stream of Records, which the caller closes. Returns None for a 204: there are no more Records."""
        request = self._build(method, path, RECORDS, body)
        request.headers.update(STREAM_HEADERS)
        if after is not None:
            request.headers["last-event-id"] = str(after)
        response = await self._send(request, stream=True)
        try:
            if response.status_code == 204:
                await response.aclose()
                return None
            if response.status_code != 200:
                raise error_from_response(response.status_code, await response.aread())
            if not response.headers.get("content-type", "").startswith("text/event-stream"):
                raise self.not_limelight(f"{path} is not an event stream there")
        except BaseException:
            await response.aclose()
            raise
        return response

    def connection_lost(self, error: Exception) -> ConnectionLost:
        return ConnectionLost(f"{self.url} does not answer: {error or type(error).__name__}")

    def client_closed(self) -> ConnectionLost:
        return ConnectionLost("the client is closed")

    def not_limelight(self, reason: str) -> ClientError:
        return ClientError(f"{self.url} does not seem to be a Limelight server: {reason}", code="not_limelight")

    def invalid_url(self, reason: object = "it has to begin with http:// or https://") -> ClientError:
        return ClientError(f"{self.url!r} is not a valid address: {reason}")

    def _build(self, method: str, path: str, params: Any, body: Any) -> httpx.Request:
        content = None if body is None else msgspec.json.encode(body)
        headers = None if body is None else {"content-type": "application/json"}
        try:
            return self._http.build_request(method, self.url + path, params=params, content=content, headers=headers)
        except httpx.InvalidURL as error:
            raise self.invalid_url(error) from error

    async def _send(self, request: httpx.Request, *, stream: bool = False) -> httpx.Response:
        if self.closed:
            raise self.client_closed()
        try:
            return await self._http.send(request, stream=stream)
        except httpx.UnsupportedProtocol as error:
            raise self.invalid_url() from error


def url_path(*segments: str) -> str:
    """Join segments to a URL path. Each segment is quoted, including ids that consist of dots."""
    quoted = (quote(one, safe="") if one.strip(".") else one.replace(".", "%2E") for one in segments)
    return "".join(f"/{one}" for one in quoted)


def _ssl_context(url: str) -> ssl.SSLContext:
    """Return the SSL context for a URL. For https, SSL_CERT_FILE applies to loopback addresses too.

    For http it is empty, because loading the certificates takes longer than a request.
    """
    return httpx.create_ssl_context() if url.startswith("https:") else ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)


def _is_loopback(url: str) -> bool:
    try:
        host = urlsplit(url).hostname or ""
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
