"""Fetches pages of the web for agents, with limits: http and https only, no private address, 1 MB, 10 seconds.

The name of a host is looked up once, its addresses are checked, and the connection goes to the address that was
checked: a name that means another machine a moment later gains nothing. Each redirect is looked at anew.
"""

import ipaddress
import json
import socket
import time
from typing import Any, cast
from urllib.parse import quote, urljoin, urlsplit

import httpx
import msgspec

from limelight.builtin.readable import readable

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

    def read(self, url: str) -> str:
        """The readable text of a page."""
        text, kind = self._get(url)
        shown = readable(text) if "html" in kind else text
        return shown if len(shown) <= LETTERS else f"{shown[:LETTERS]}\n… ({len(shown) - LETTERS} more characters)"

    def search(self, engine: str, query: str) -> list[dict[str, Any]]:
        """Ask an engine that answers as SearXNG does."""
        text, _ = self._get(engine.replace("{query}", quote(query)))
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
        until = time.monotonic() + SECONDS
        try:
            with httpx.Client(timeout=SECONDS, trust_env=False) as client:
                for _ in range(REDIRECTS + 1):
                    if time.monotonic() > until:
                        raise Refused(f"{url} takes longer than {SECONDS} seconds")
                    with client.stream(**self._request(url)) as response:
                        if not response.has_redirect_location:
                            return _text_of(response, url, until)
                        url = urljoin(url, response.headers["location"])
        except (httpx.HTTPError, httpx.InvalidURL, ValueError) as error:  # ValueError: ports and names that are none
            raise Refused(f"{url} cannot be read: {type(error).__name__}: {error}") from error
        raise Refused(f"{url} sends us from one place to the next")

    def _request(self, url: str) -> dict[str, Any]:
        """The request for a page, addressed to the very machine that was checked."""
        parts = urlsplit(url)
        host = parts.hostname or ""
        if parts.scheme not in ("http", "https") or not host:
            raise Refused(f"{url} is no address of a page: it has to begin with http:// or https://")
        address = self._checked(host)
        place = f"[{address}]" if ":" in address else address
        port = f":{parts.port}" if parts.port else ""
        return {
            "method": "GET",
            "url": parts._replace(netloc=f"{place}{port}").geturl(),
            "headers": {"host": f"{host}{port}", "user-agent": "limelight", "accept": "text/html, text/*, */*;q=0.1"},
            "extensions": {"sni_hostname": host},
        }

    def _checked(self, host: str) -> str:
        try:
            found = [str(entry[4][0]) for entry in socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)]
        except OSError as error:
            raise Refused(f"there is no machine {host}") from error
        if not self.private_addresses and not all(map(_is_public, found)):
            raise Refused(f"{host} is an address of this machine or of a private network")
        return found[0]


def _is_public(address: str) -> bool:
    known = ipaddress.ip_address(address)
    return (getattr(known, "ipv4_mapped", None) or known).is_global


def _text_of(response: httpx.Response, url: str, until: float) -> tuple[str, str]:
    kind = response.headers.get("content-type", "text/plain")
    if response.status_code >= 300:
        raise Refused(f"{url} answers with {response.status_code}")
    if not kind.startswith(TEXTS):
        raise Refused(f"{url} is no text but {kind}")
    body = b""
    for piece in response.iter_bytes():
        body += piece
        if len(body) > BYTES or time.monotonic() > until:
            break
    try:
        return body[:BYTES].decode(response.charset_encoding or "utf-8", "replace"), kind
    except LookupError:  # an encoding that nobody knows
        return body[:BYTES].decode("utf-8", "replace"), kind
