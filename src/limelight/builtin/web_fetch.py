"""Fetches pages of the web for agents, with limits: http and https only, no private address, 1 MB, 10 seconds in all.

The name of a host is looked up once, its addresses are checked, and the connection goes to the address that was
checked: a name that means another machine a moment later gains nothing. Each redirect is looked at anew. A search
engine that the configuration names may be anywhere; what it redirects to may not.

It blocks, as the tools that use it do; inside it has an event loop of its own, as only that ends a server that drips.
"""

import asyncio
import ipaddress
import json
import socket
import threading
import zlib
from concurrent.futures import Future
from typing import Any, cast
from urllib.parse import SplitResult, quote, urljoin, urlsplit

import httpx
import msgspec

from limelight.builtin.html_text import readable

SECONDS = 10
BYTES = 1024 * 1024
LETTERS = 20_000
REDIRECTS = 5
RESULTS = 5
TEXTS = ("text/", "application/json", "application/xml", "application/xhtml")


class Refused(Exception):
    """A page that is not to be had, and why."""


class Web(msgspec.Struct, frozen=True, kw_only=True):
    private_addresses: bool = False
    engine: str = ""
    """The address of a search engine, with {query} in it. Its machine may be a private one."""

    def read(self, url: str) -> str:
        """The readable text of a page."""
        text, kind = self._get(url)
        shown = readable(text) if "html" in kind else text
        return shown if len(shown) <= LETTERS else f"{shown[:LETTERS]}\n… ({len(shown) - LETTERS} more characters)"

    def search(self, query: str) -> list[dict[str, Any]]:
        """Ask the engine, which answers as SearXNG does."""
        text, _ = self._get(self.engine.replace("{query}", quote(query)))
        try:
            found = cast("list[dict[str, Any]]", json.loads(text)["results"])
            return [
                {"title": str(one["title"]), "url": str(one["url"]), "snippet": str(one.get("content", ""))}
                for one in found[:RESULTS]
            ]
        except (ValueError, KeyError, TypeError) as error:
            raise Refused("the search engine did not answer with results in JSON: look at tools.search_url") from error

    def _get(self, url: str) -> tuple[str, str]:
        """Text and media type."""
        try:
            return asyncio.run(asyncio.wait_for(self._fetched(url), SECONDS))
        except TimeoutError as error:
            raise Refused(f"{url} takes longer than {SECONDS} seconds") from error

    async def _fetched(self, url: str) -> tuple[str, str]:
        try:
            async with httpx.AsyncClient(timeout=SECONDS, trust_env=False) as client:
                for _ in range(REDIRECTS + 1):
                    async with client.stream(**await self._request(url)) as response:
                        if not response.has_redirect_location:
                            return await _text_of(response, url)
                        url = urljoin(url, response.headers["location"])
        except (httpx.HTTPError, httpx.InvalidURL, ValueError) as error:  # ValueError: ports and names that are none
            raise Refused(f"{url} cannot be read: {type(error).__name__}: {error}") from error
        raise Refused(f"{url} sends us from one place to the next")

    async def _request(self, url: str) -> dict[str, Any]:
        """The request for a page, addressed to the very machine that was checked."""
        parts = urlsplit(url)
        host = parts.hostname or ""
        if parts.scheme not in ("http", "https") or not host:
            raise Refused(f"{url} is no address of a page: it has to begin with http:// or https://")
        address = await self._checked(parts)
        place = f"[{address}]" if ":" in address else address
        port = f":{parts.port}" if parts.port else ""
        accept = {"accept": "text/html, text/*, */*;q=0.1", "accept-encoding": "identity"}
        return {
            "method": "GET",
            "url": parts._replace(netloc=f"{place}{port}").geturl(),
            "headers": {"host": f"{host}{port}", "user-agent": "limelight", **accept},
            "extensions": {"sni_hostname": host},
        }

    async def _checked(self, parts: SplitResult) -> str:
        host = parts.hostname or ""
        try:
            found = await _addresses(host)
        except OSError as error:
            raise Refused(f"there is no machine {host}") from error
        trusted = self.private_addresses or (self.engine and _machine(parts) == _machine(urlsplit(self.engine)))
        if not trusted and not all(map(_is_public, found)):
            raise Refused(f"{host} is an address of this machine or of a private network")
        return found[0]


def _machine(parts: SplitResult) -> tuple[str, str | None, int | None]:
    return parts.scheme, parts.hostname, parts.port


async def _addresses(host: str) -> list[str]:
    """In a thread that nobody waits for: to look a name up cannot be broken off."""
    looked_up: Future[list[str]] = Future()
    looked_up.set_running_or_notify_cancel()  # from here on it cannot be cancelled, so that it can be set at any time

    def look_up() -> None:
        try:
            entries = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
            looked_up.set_result([str(entry[4][0]) for entry in entries])
        except Exception as error:
            looked_up.set_exception(error)

    threading.Thread(target=look_up, daemon=True).start()
    return await asyncio.wrap_future(looked_up)


def _is_public(address: str) -> bool:
    known = ipaddress.ip_address(address)
    return (getattr(known, "ipv4_mapped", None) or known).is_global


async def _text_of(response: httpx.Response, url: str) -> tuple[str, str]:
    kind = response.headers.get("content-type", "text/plain")
    if response.status_code >= 300:
        raise Refused(f"{url} answers with {response.status_code}")
    if not kind.startswith(TEXTS):
        raise Refused(f"{url} is no text but {kind}")
    body = b""
    async for piece in response.aiter_raw():
        body += piece
        if len(body) > BYTES:
            break
    body = _unpacked(body[:BYTES], response.headers.get("content-encoding", ""), url)
    try:
        return body.decode(response.charset_encoding or "utf-8", "replace"), kind
    except LookupError:  # an encoding that nobody knows
        return body.decode("utf-8", "replace"), kind


def _unpacked(body: bytes, packing: str, url: str) -> bytes:
    """Some servers compress though nobody asked for it; a little of that may be very much unpacked."""
    if packing in ("", "identity"):
        return body
    if packing != "gzip":
        raise Refused(f"{url} is packed as {packing[:40]}")
    try:
        return zlib.decompressobj(wbits=31).decompress(body, BYTES)
    except zlib.error as error:
        raise Refused(f"{url} is packed as gzip, but cannot be unpacked") from error
