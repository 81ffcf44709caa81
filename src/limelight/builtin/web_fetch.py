"""Fetches web pages for agents, and extracts the readable text of HTML.

Allows only HTTP and HTTPS to public addresses, 1 MB and 10 seconds. Each host name is resolved once, its addresses are
checked, and the connection is opened to a checked address, so that a later DNS answer cannot change it. Redirects
are checked in the same way. The search engine that the configuration names may have a private address; the targets of
its redirects may not.

The client blocks, like the tools that use it. It runs an event loop internally, which can abort a request to a
server that sends only a byte at a time.
"""

import asyncio
import ipaddress
import json
import re
import socket
import threading
import zlib
from concurrent.futures import Future
from html.parser import HTMLParser
from typing import Any, cast
from urllib.parse import SplitResult, quote, urljoin, urlsplit

import httpx
import msgspec

MAX_SECONDS = 10
MAX_BYTES = 1024 * 1024
MAX_CHARACTERS = 20_000
MAX_REDIRECTS = 5
MAX_RESULTS = 5
GLOBAL_UNICAST = ipaddress.IPv6Network("2000::/3")
"""The network of all IPv6 addresses assigned for global use."""
NAT64 = ipaddress.IPv6Network("64:ff9b::/96")
TEXT_TYPES = ("text/", "application/json", "application/xml", "application/xhtml")
HIDDEN_TAGS = frozenset(re.findall(r"\w+", "script style noscript template svg head nav footer form button"))
BLOCK_TAGS = frozenset(
    re.findall(r"\w+", "p div section article main br li ul ol tr table h1 h2 h3 h4 h5 h6 blockquote pre header figure")
)


class FetchError(Exception):
    """Raised if a page cannot be read. The message has the reason."""


class WebClient(msgspec.Struct, frozen=True, kw_only=True):
    """A blocking client that reads web pages and queries a search engine."""

    private_addresses: bool = False
    search_url: str = ""
    """The search engine's URL, with {query} as a placeholder. The engine may have a private address."""

    def read(self, url: str) -> str:
        """Return the readable text of a page. A long text is truncated and ends with a note about it."""
        text, media_type = self._get(url)
        text = html_to_text(text) if "html" in media_type else text
        more = len(text) - MAX_CHARACTERS
        return text if more <= 0 else f"{text[:MAX_CHARACTERS]}\n… ({more} more characters)"

    def search(self, query: str) -> list[dict[str, Any]]:
        """Return the search engine's results. The engine must answer in SearXNG's JSON format."""
        text, _ = self._get(self.search_url.replace("{query}", quote(query)))
        try:
            found = cast("list[dict[str, Any]]", json.loads(text)["results"])
            return [
                {"title": str(one["title"]), "url": str(one["url"]), "snippet": str(one.get("content", ""))}
                for one in found[:MAX_RESULTS]
            ]
        except (ValueError, KeyError, TypeError) as error:
            raise FetchError("the search engine did not answer with results in JSON: check tools.search_url") from error

    def _get(self, url: str) -> tuple[str, str]:
        """Fetch a page and return its text and its media type."""
        try:
            return asyncio.run(asyncio.wait_for(self._fetch(url), MAX_SECONDS))
        except TimeoutError as error:
            raise FetchError(f"{url} takes longer than {MAX_SECONDS} seconds") from error

    async def _fetch(self, url: str) -> tuple[str, str]:
        try:
            async with httpx.AsyncClient(timeout=MAX_SECONDS, trust_env=False) as client:
                for _ in range(MAX_REDIRECTS + 1):
                    async with client.stream(**await self._request(url)) as response:
                        if not response.has_redirect_location:
                            return await _read_text(response, url)
                        url = urljoin(url, response.headers["location"])
        except (httpx.HTTPError, httpx.InvalidURL, ValueError) as error:  # ValueError: invalid ports and names
            raise FetchError(f"{url} cannot be read: {type(error).__name__}: {error}") from error
        raise FetchError(f"{url} redirects too often")

    async def _request(self, url: str) -> dict[str, Any]:
        """Return the arguments of an HTTP request that connects to the checked IP address instead of the host name."""
        parts = urlsplit(url)
        host = parts.hostname or ""
        if parts.scheme not in ("http", "https") or not host:
            raise FetchError(f"{url} is not the address of a page: it has to begin with http:// or https://")
        address = await self._checked_address(parts)
        literal = f"[{address}]" if ":" in address else address
        port = f":{parts.port}" if parts.port else ""
        accept = {"accept": "text/html, text/*, */*;q=0.1", "accept-encoding": "identity"}
        return {
            "method": "GET",
            "url": parts._replace(netloc=f"{literal}{port}").geturl(),
            "headers": {"host": f"{host}{port}", "user-agent": "limelight", **accept},
            "extensions": {"sni_hostname": host},
        }

    async def _checked_address(self, parts: SplitResult) -> str:
        """Return the host's first IP address. Raises FetchError if any of its addresses is not public."""
        host = parts.hostname or ""
        try:
            addresses = await _resolve_host(host)
        except OSError as error:
            raise FetchError(f"the host {host} cannot be resolved") from error
        is_engine = bool(self.search_url) and _origin(parts) == _origin(urlsplit(self.search_url))
        if not (self.private_addresses or is_engine or all(map(_is_public, addresses))):
            raise FetchError(f"{host} is an address of this machine or of a private network")
        return addresses[0]


def _origin(parts: SplitResult) -> tuple[str, str | None, int | None]:
    return parts.scheme, parts.hostname, parts.port


async def _resolve_host(host: str) -> list[str]:
    """Return the IP addresses of a host name, resolved in a daemon thread, because getaddrinfo cannot be cancelled."""
    addresses: Future[list[str]] = Future()
    addresses.set_running_or_notify_cancel()  # setting the result of a cancelled future would raise

    def resolve() -> None:
        try:
            entries = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
            addresses.set_result([str(entry[4][0]) for entry in entries])
        except Exception as error:
            addresses.set_exception(error)

    threading.Thread(target=resolve, daemon=True).start()
    return await asyncio.wrap_future(addresses)


def _is_public(address: str) -> bool:
    """Whether an IP address is public, and so is the IPv4 address that it may contain.

    A gateway of the network may translate an IPv6 address to the IPv4 address inside of it (NAT64, 6to4).
    """
    parsed = ipaddress.ip_address(address)
    if isinstance(parsed, ipaddress.IPv4Address):
        return parsed.is_global and not parsed.is_multicast and not parsed.is_reserved
    embedded = parsed.ipv4_mapped or parsed.sixtofour or _nat64_address(parsed)
    if embedded is not None:
        return _is_public(str(embedded))
    return parsed in GLOBAL_UNICAST and parsed.is_global and parsed.teredo is None


def _nat64_address(address: ipaddress.IPv6Address) -> ipaddress.IPv4Address | None:
    return ipaddress.IPv4Address(int(address) & 0xFFFFFFFF) if address in NAT64 else None


async def _read_text(response: httpx.Response, url: str) -> tuple[str, str]:
    media_type = response.headers.get("content-type", "text/plain")
    if response.status_code >= 300:
        raise FetchError(f"{url} answers with {response.status_code}")
    if not media_type.startswith(TEXT_TYPES):
        raise FetchError(f"{url} is not text but {media_type}")
    body = b""
    async for chunk in response.aiter_raw():
        body += chunk
        if len(body) > MAX_BYTES:
            break
    body = _decompress(body[:MAX_BYTES], response.headers.get("content-encoding", ""), url)
    try:
        return body.decode(response.charset_encoding or "utf-8", "replace"), media_type
    except LookupError:  # an unknown encoding
        return body.decode("utf-8", "replace"), media_type


def _decompress(body: bytes, encoding: str, url: str) -> bytes:
    """Decompress a response body up to the size limit. Some servers compress although the request did not allow it."""
    if encoding in ("", "identity"):
        return body
    if encoding != "gzip":
        raise FetchError(f"{url} has the content encoding {encoding[:40]}, which is not supported")
    try:
        return zlib.decompressobj(wbits=31).decompress(body, MAX_BYTES)
    except zlib.error as error:
        raise FetchError(f"{url} is not valid gzip") from error


def html_to_text(html: str) -> str:
    """Return the title and the readable text of an HTML page, with one line for each block element."""
    parser = _TextParser()
    parser.feed(html)
    parser.close()
    lines = (" ".join(line.split()) for line in "".join(parser.text).split("\n"))
    text = re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip()
    return "\n\n".join(filter(None, (" ".join("".join(parser.title).split()), text)))


class _TextParser(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.text: list[str] = []
        self.title: list[str] = []
        self._hidden_tags: list[str] = []
        self._in_title = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._in_title |= tag == "title"
        if tag in HIDDEN_TAGS:
            self._hidden_tags.append(tag)
        elif tag in BLOCK_TAGS:
            self.text.append("\n")

    def handle_endtag(self, tag: str) -> None:
        self._in_title &= tag != "title"
        if tag in self._hidden_tags:  # also ends unclosed tags inside of this one
            del self._hidden_tags[self._hidden_tags.index(tag) :]
        elif tag in BLOCK_TAGS:
            self.text.append("\n")

    def handle_data(self, data: str) -> None:
        if self._in_title:
            self.title.append(data)
        elif not self._hidden_tags:
            self.text.append(data)
