"""The web client against a local server: limits hold, private addresses are refused, HTML becomes text."""

import asyncio
import gzip
import json
import socket
import threading
import time
from collections.abc import Generator
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from limelight.builtin.search_tools import SearchTools
from limelight.builtin.web_fetch import MAX_BYTES, MAX_CHARACTERS, FetchError, WebClient, html_to_text

PAGES: dict[str, tuple[int, str, bytes]] = {
    "/page": (200, "text/html; charset=utf-8", "<title>Bées</title><p>They <b>dance</b>.<p>All day.".encode()),
    "/plain": (200, "text/plain", b"as it is <b>"),
    "/large": (200, "text/plain", b"x" * (MAX_BYTES * 3)),
    "/picture": (200, "image/png", b"\x89PNG"),
    "/gone": (404, "text/html", b"no"),
    "/moved": (302, "/page", b""),
    "/round": (302, "/round", b""),
    "/nowhere": (304, "", b""),
    "/odd": (200, "text/plain; charset=unknown", b"as it is"),
    "/away": (302, "file:///etc/passwd", b""),
    "/search": (
        200,
        "application/json",
        json.dumps({"results": [{"title": "T", "url": "u", "content": "c"}] * 9}).encode(),
    ),
    "/packed": (200, "text/plain", gzip.compress(b"unpacked")),
    "/packed-much": (200, "text/plain", gzip.compress(b"x" * (MAX_BYTES * 50))),
    "/packed-badly": (200, "text/plain", b"no gzip"),
    "/packed-otherwise": (200, "text/plain", b"?"),
    "/search-elsewhere": (302, "http://127.0.0.2/", b""),
    "/nonsense": (200, "application/json", b'{"answers": []}'),
}
requests: list[tuple[str, str]] = []
stop_dripping = threading.Event()
"""Ends slow responses whose client does not disconnect."""


class PageHandler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        requests.append((self.path, self.headers["host"]))
        if self.path.startswith("/drip"):
            self._drip()
            return
        status, kind, body = PAGES[self.path.partition("?")[0]]
        self.send_response(status)
        self.send_header("location" if status == 302 else "content-type", kind)
        if self.path.startswith("/packed"):
            self.send_header("content-encoding", "br" if self.path == "/packed-otherwise" else "gzip")
        self.end_headers()
        with suppress(OSError):  # the client has read enough
            self.wfile.write(body)

    def _drip(self) -> None:
        """Send single bytes of the head or the body until the client disconnects."""
        self.wfile.write(b"HTTP/1.1 200 OK\r\n")
        if self.path == "/drip-body":
            self.wfile.write(b"content-type: text/plain\r\n\r\n")
        with suppress(OSError):
            while not stop_dripping.wait(0.05):
                self.wfile.write(b"x")
                self.wfile.flush()

    def log_message(self, format: str, *args: Any) -> None:
        """No log."""


@pytest.fixture(scope="module")
def site() -> Generator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), PageHandler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://localhost:{server.server_port}"
    stop_dripping.set()
    server.shutdown()
    thread.join()
    server.server_close()


CLIENT = WebClient(private_addresses=True)


@pytest.fixture(autouse=True)
def resolve_to_ipv4(monkeypatch: pytest.MonkeyPatch) -> None:
    """The server listens on IPv4 only."""
    real = socket.getaddrinfo

    def resolve(host: str, port: Any, *_: Any, **__: Any) -> Any:
        return real(host, port, family=socket.AF_INET, type=socket.SOCK_STREAM)

    monkeypatch.setattr(socket, "getaddrinfo", resolve)


def test_page_becomes_text(site: str) -> None:
    assert CLIENT.read(f"{site}/page") == "Bées\n\nThey dance.\nAll day."
    assert CLIENT.read(f"{site}/plain") == "as it is <b>"
    assert SearchTools(web=True, private_addresses=True).readurl(f"{site}/moved").startswith("Bées")
    assert requests[-1] == ("/page", site.removeprefix("http://"))


def test_large_page_is_truncated_with_a_note(site: str) -> None:
    text = CLIENT.read(f"{site}/large")
    assert text.endswith(f"… ({MAX_BYTES - MAX_CHARACTERS} more characters)")


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("/gone", "answers with 404"),
        ("/picture", "is not text but image/png"),
        ("/round", "redirects too often"),
        ("/away", "has to begin with http"),
        ("/nowhere", "answers with 304"),
    ],
)
def test_page_that_cannot_be_read_is_a_fetch_error(site: str, path: str, message: str) -> None:
    with pytest.raises(FetchError, match=message):
        CLIENT.read(site + path)


@pytest.mark.parametrize(
    "url", ["http://[bees/", "http://bees:honey/", "http://bees:99999/", f"http://{'b' * 99}/", "http://127.0.0.1/\x00"]
)
def test_invalid_url_is_a_fetch_error(url: str) -> None:
    """A model may write anything; another exception would end the run of a graph."""
    with pytest.raises(FetchError):
        CLIENT.read(url)


def test_unknown_charset_is_read_as_utf8(site: str) -> None:
    assert CLIENT.read(f"{site}/odd") == "as it is"


@pytest.mark.parametrize("path", ["/drip-head", "/drip-body"])
def test_slow_response_times_out(site: str, path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("limelight.builtin.web_fetch.MAX_SECONDS", 0.5)
    began = time.monotonic()
    with pytest.raises(FetchError, match=rf"{path} takes longer than 0\.5 seconds"):
        CLIENT.read(site + path)
    assert time.monotonic() - began < 10


def test_slow_name_resolution_times_out(monkeypatch: pytest.MonkeyPatch) -> None:
    started, may_end = threading.Event(), threading.Event()

    def resolve(*_: Any, **__: Any) -> Any:
        started.set()
        may_end.wait(20)
        raise OSError

    monkeypatch.setattr("limelight.builtin.web_fetch.socket.getaddrinfo", resolve)
    monkeypatch.setattr("limelight.builtin.web_fetch.MAX_SECONDS", 0.2)
    with pytest.raises(FetchError, match="takes longer"):
        CLIENT.read("http://bees.example/")
    assert started.is_set()
    may_end.set()


def test_gzip_is_decompressed_up_to_the_limit(site: str) -> None:
    assert CLIENT.read(f"{site}/packed") == "unpacked"
    assert CLIENT.read(f"{site}/packed-much").endswith(f"… ({MAX_BYTES - MAX_CHARACTERS} more characters)")
    for path, message in (("/packed-badly", "is not valid gzip"), ("/packed-otherwise", "encoding br")):
        with pytest.raises(FetchError, match=message):
            CLIENT.read(site + path)


@pytest.mark.requirement("private-addresses")
@pytest.mark.parametrize(
    "url",
    [
        "http://127.0.0.1/",
        "http://localhost/",
        "http://2130706433/",
        "http://[::ffff:127.0.0.1]/",
        "http://10.0.0.1/x",
        "http://169.254.169.254/latest/meta-data",
        "http://0.0.0.0/",
        "http://224.0.0.251/",
        "http://240.0.0.1/",
        "http://255.255.255.255/",
        "http://100.64.0.1/",
        "http://[::]/",
        "http://[::1]/",
        "http://[::127.0.0.1]/",
        "http://[::8.8.8.8]/",
        "http://[::ffff:10.0.0.1]/",
        "http://[64:ff9b::127.0.0.1]/",
        "http://[64:ff9b::a9fe:a9fe]/",
        "http://[64:ff9b:1::8.8.8.8]/",
        "http://[2002:7f00:1::]/",
        "http://[2002:a00:1::1]/",
        "http://[2001:0:4136:e378:8000:63bf:3fff:fdd2]/",
        "http://[ff02::1]/",
        "http://[ff0e::1]/",
        "http://[fe80::1]/",
        "http://[fec0::1]/",
        "http://[fd00::1]/",
        "http://[2001:db8::1]/",
        "http://[4000::1]/",
    ],
)
def test_loopback_and_private_addresses_are_refused(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    with pytest.raises(FetchError, match=r"of this machine or of a private network|cannot be resolved"):
        WebClient().read(url)


@pytest.mark.parametrize(
    "address",
    [
        "8.8.8.8",
        "2606:4700::6810:84e5",
        "2a00:1450:4001:82b::200e",
        "::ffff:8.8.8.8",
        "64:ff9b::8.8.8.8",
        "2002:808:808::1",
    ],
)
async def test_public_addresses_are_accepted(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also those that contain a public IPv4 address: a network without IPv4 reaches all IPv4 hosts by NAT64."""

    async def resolve(host: str) -> list[str]:
        return [address]

    monkeypatch.setattr("limelight.builtin.web_fetch._resolve_host", resolve)
    request = await WebClient()._request("http://bees.example/")  # pyright: ignore[reportPrivateUsage]
    assert request["url"] == (f"http://[{address}]/" if ":" in address else f"http://{address}/")


@pytest.mark.requirement("private-addresses")
@pytest.mark.parametrize("other", ["10.0.0.1", "64:ff9b::10.0.0.1", "2002:7f00:1::", "ff0e::1"])
async def test_host_with_a_public_and_a_private_address_is_refused(other: str, monkeypatch: pytest.MonkeyPatch) -> None:
    async def resolve(host: str) -> list[str]:
        return ["8.8.8.8", other]

    monkeypatch.setattr("limelight.builtin.web_fetch._resolve_host", resolve)
    with pytest.raises(FetchError, match="of this machine or of a private network"):
        await WebClient()._request("http://bees.example/")  # pyright: ignore[reportPrivateUsage]


@pytest.mark.parametrize("url", ["file:///etc/passwd", "ftp://example.com", "bees", "http://", "http:///x"])
def test_only_http_urls_are_read(url: str) -> None:
    with pytest.raises(FetchError, match="has to begin with http"):
        CLIENT.read(url)


def test_host_is_resolved_once_and_the_request_goes_to_that_address(site: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A different DNS answer a moment later has no effect."""
    resolved: list[str] = []

    def resolve(host: str, port: Any, **_: Any) -> Any:
        resolved.append(host)
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", 0))]

    monkeypatch.setattr("limelight.builtin.web_fetch.socket.getaddrinfo", resolve)
    port = site.rpartition(":")[2]
    request = asyncio.run(CLIENT._request(f"http://bees.example:{port}/plain"))  # pyright: ignore[reportPrivateUsage]
    assert request["url"] == f"http://127.0.0.1:{port}/plain"
    assert request["headers"]["host"] == f"bees.example:{port}"
    assert request["extensions"] == {"sni_hostname": "bees.example"}
    assert resolved == ["bees.example"]


def test_search_engine_gets_the_query(site: str) -> None:
    tools = SearchTools(search_url=f"{site}/search?q={{query}}")
    assert tools.search("bees & more") == [{"title": "T", "url": "u", "snippet": "c"}] * 5
    assert requests[-1][0] == "/search?q=bees%20%26%20more"


def test_engine_with_another_format_is_a_fetch_error(site: str) -> None:
    for path in ("/nonsense", "/plain"):
        with pytest.raises(FetchError, match=r"tools\.search_url"):
            WebClient(search_url=site + path).search("bees")


def test_local_engine_does_not_allow_other_local_urls(site: str) -> None:
    tools = SearchTools(search_url=f"{site}/search?q={{query}}", web=True)
    assert tools.search("bees")
    with pytest.raises(FetchError, match="of this machine or of a private network"):
        tools.readurl(f"{site}/page")
    with pytest.raises(FetchError, match=r"127\.0\.0\.2 is an address of this machine"):
        WebClient(search_url=f"{site}/search-elsewhere").search("bees")
    other = site.replace("localhost", "{query}")
    with pytest.raises(FetchError, match="of this machine or of a private network"):
        WebClient(search_url=f"{other}/search").search("localhost")


def test_html_to_text_leaves_out_scripts_and_navigation() -> None:
    html = """<head><title> A
      page </title><style>x{}</style></head><body><nav>Menu <div>open</nav><h1>Head</h1>
      <script>let a = "<p>";</script><ul><li>one<li>two</ul>A &amp; B<br>C"""
    assert html_to_text(html) == "A page\n\nHead\n\none\ntwo\nA & B\nC"
    assert html_to_text("") == ""
