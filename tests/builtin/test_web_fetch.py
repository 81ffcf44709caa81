"""Pages of the web, from a server of our own: limits hold, private addresses are refused, HTML becomes text."""

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

from limelight.builtin.html_text import readable
from limelight.builtin.search_tools import Lookup
from limelight.builtin.web_fetch import BYTES, LETTERS, Refused, Web

PAGES: dict[str, tuple[int, str, bytes]] = {
    "/page": (200, "text/html; charset=utf-8", "<title>Bées</title><p>They <b>dance</b>.<p>All day.".encode()),
    "/plain": (200, "text/plain", b"as it is <b>"),
    "/large": (200, "text/plain", b"x" * (BYTES * 3)),
    "/picture": (200, "image/png", b"\x89PNG"),
    "/gone": (404, "text/html", b"no"),
    "/moved": (302, "/page", b""),
    "/round": (302, "/round", b""),
    "/nowhere": (304, "", b""),
    "/odd": (200, "text/plain; charset=nobody-knows", b"as it is"),
    "/away": (302, "file:///etc/passwd", b""),
    "/search": (
        200,
        "application/json",
        json.dumps({"results": [{"title": "T", "url": "u", "content": "c"}] * 9}).encode(),
    ),
    "/packed": (200, "text/plain", gzip.compress(b"unpacked")),
    "/packed-much": (200, "text/plain", gzip.compress(b"x" * (BYTES * 50))),
    "/packed-badly": (200, "text/plain", b"no gzip"),
    "/packed-otherwise": (200, "text/plain", b"?"),
    "/search-elsewhere": (302, "http://127.0.0.2/", b""),
    "/nonsense": (200, "application/json", b'{"answers": []}'),
}
asked: list[tuple[str, str]] = []
left_alone = threading.Event()
"""Ends what drips, should nobody leave."""


class Answering(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        asked.append((self.path, self.headers["host"]))
        if self.path.startswith("/drip"):
            self._drip()
            return
        status, kind, body = PAGES[self.path.partition("?")[0]]
        self.send_response(status)
        self.send_header("location" if status == 302 else "content-type", kind)
        if self.path.startswith("/packed"):
            self.send_header("content-encoding", "br" if self.path == "/packed-otherwise" else "gzip")
        self.end_headers()
        with suppress(OSError):  # whoever asked has read enough
            self.wfile.write(body)

    def _drip(self) -> None:
        """A byte every few moments, of the head or of the body, until whoever asked has left."""
        self.wfile.write(b"HTTP/1.1 200 OK\r\n")
        if self.path == "/drip-body":
            self.wfile.write(b"content-type: text/plain\r\n\r\n")
        with suppress(OSError):
            while not left_alone.wait(0.05):
                self.wfile.write(b"x")
                self.wfile.flush()

    def log_message(self, format: str, *args: Any) -> None:
        """Silence."""


@pytest.fixture(scope="module")
def site() -> Generator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Answering)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://localhost:{server.server_port}"
    left_alone.set()
    server.shutdown()
    thread.join()
    server.server_close()


WEB = Web(private_addresses=True)


@pytest.fixture(autouse=True)
def only_four(monkeypatch: pytest.MonkeyPatch) -> None:
    """`localhost` is the address that the server listens on."""
    real = socket.getaddrinfo

    def resolve(host: str, port: Any, *_: Any, **__: Any) -> Any:
        return real(host, port, family=socket.AF_INET, type=socket.SOCK_STREAM)

    monkeypatch.setattr(socket, "getaddrinfo", resolve)


def test_a_page_becomes_text(site: str) -> None:
    assert WEB.read(f"{site}/page") == "Bées\n\nThey dance.\nAll day."
    assert WEB.read(f"{site}/plain") == "as it is <b>"
    assert Lookup(web=True, private_addresses=True).readurl(f"{site}/moved").startswith("Bées")
    assert asked[-1] == ("/page", site.removeprefix("http://"))


def test_a_large_page_is_cut(site: str) -> None:
    text = WEB.read(f"{site}/large")
    assert text.endswith(f"… ({BYTES - LETTERS} more characters)")


@pytest.mark.parametrize(
    ("path", "told"),
    [
        ("/gone", "answers with 404"),
        ("/picture", "is no text but image/png"),
        ("/round", "from one place to the next"),
        ("/away", "has to begin with http"),
        ("/nowhere", "answers with 304"),
    ],
)
def test_a_page_that_is_none(site: str, path: str, told: str) -> None:
    with pytest.raises(Refused, match=told):
        WEB.read(site + path)


@pytest.mark.parametrize(
    "url", ["http://[bees/", "http://bees:honey/", "http://bees:99999/", f"http://{'b' * 99}/", "http://127.0.0.1/\x00"]
)
def test_an_address_that_is_none_is_refused_as_any_other(url: str) -> None:
    """A model may write anything; whatever else were raised would end a graph's run."""
    with pytest.raises(Refused):
        WEB.read(url)


def test_an_encoding_that_nobody_knows(site: str) -> None:
    assert WEB.read(f"{site}/odd") == "as it is"


@pytest.mark.parametrize("path", ["/drip-head", "/drip-body"])
def test_a_server_that_drips_is_left(site: str, path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("limelight.builtin.web_fetch.SECONDS", 0.5)
    began = time.monotonic()
    with pytest.raises(Refused, match=rf"{path} takes longer than 0\.5 seconds"):
        WEB.read(site + path)
    assert time.monotonic() - began < 10


def test_a_name_that_takes_too_long_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    looking, may_end = threading.Event(), threading.Event()

    def resolve(*_: Any, **__: Any) -> Any:
        looking.set()
        may_end.wait(20)
        raise OSError

    monkeypatch.setattr("limelight.builtin.web_fetch.socket.getaddrinfo", resolve)
    monkeypatch.setattr("limelight.builtin.web_fetch.SECONDS", 0.2)
    with pytest.raises(Refused, match="takes longer"):
        WEB.read("http://bees.example/")
    assert looking.is_set()
    may_end.set()


def test_a_packed_page_is_unpacked_up_to_the_limit(site: str) -> None:
    assert WEB.read(f"{site}/packed") == "unpacked"
    assert WEB.read(f"{site}/packed-much").endswith(f"… ({BYTES - LETTERS} more characters)")
    for path, told in (("/packed-badly", "cannot be unpacked"), ("/packed-otherwise", "is packed as br")):
        with pytest.raises(Refused, match=told):
            WEB.read(site + path)


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
    ],
)
def test_addresses_of_this_machine_and_of_private_networks_are_refused(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.undo()
    with pytest.raises(Refused, match=r"of this machine or of a private network|no machine"):
        Web().read(url)


@pytest.mark.parametrize("url", ["file:///etc/passwd", "ftp://example.com", "bees", "http://", "http:///x"])
def test_only_the_web_is_read(url: str) -> None:
    with pytest.raises(Refused, match="has to begin with http"):
        WEB.read(url)


def test_a_name_is_looked_up_once_and_the_connection_goes_there(site: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A name that means something else a moment later gains nothing."""
    looked_up: list[str] = []

    def resolve(host: str, port: Any, **_: Any) -> Any:
        looked_up.append(host)
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", 0))]

    monkeypatch.setattr("limelight.builtin.web_fetch.socket.getaddrinfo", resolve)
    port = site.rpartition(":")[2]
    request = asyncio.run(WEB._request(f"http://bees.example:{port}/plain"))  # pyright: ignore[reportPrivateUsage]
    assert request["url"] == f"http://127.0.0.1:{port}/plain"
    assert request["headers"]["host"] == f"bees.example:{port}"
    assert request["extensions"] == {"sni_hostname": "bees.example"}
    assert looked_up == ["bees.example"]


def test_a_search_engine_is_asked(site: str) -> None:
    lookup = Lookup(search_url=f"{site}/search?q={{query}}")
    assert lookup.search("bees & more") == [{"title": "T", "url": "u", "snippet": "c"}] * 5
    assert asked[-1][0] == "/search?q=bees%20%26%20more"


def test_an_engine_that_answers_otherwise_is_named(site: str) -> None:
    for path in ("/nonsense", "/plain"):
        with pytest.raises(Refused, match=r"tools\.search_url"):
            Web(engine=site + path).search("bees")


def test_an_engine_on_this_machine_opens_nothing_else_on_it(site: str) -> None:
    lookup = Lookup(search_url=f"{site}/search?q={{query}}", web=True)
    assert lookup.search("bees")
    with pytest.raises(Refused, match="of this machine or of a private network"):
        lookup.readurl(f"{site}/page")
    with pytest.raises(Refused, match=r"127\.0\.0\.2 is an address of this machine"):
        Web(engine=f"{site}/search-elsewhere").search("bees")
    other = site.replace("localhost", "{query}")
    with pytest.raises(Refused, match="of this machine or of a private network"):
        Web(engine=f"{other}/search").search("localhost")


def test_what_is_no_text_is_left_out() -> None:
    html = """<head><title> A
      page </title><style>x{}</style></head><body><nav>Menu <div>open</nav><h1>Head</h1>
      <script>let a = "<p>";</script><ul><li>one<li>two</ul>A &amp; B<br>C"""
    assert readable(html) == "A page\n\nHead\n\none\ntwo\nA & B\nC"
    assert readable("") == ""
