"""The files of the page: which are served, to whom, and with which headers."""

import gzip
import os
from pathlib import Path

import httpx
import pytest
from starlette.applications import Starlette

from limelight.server import web_page as page_module
from limelight.server.web_page import POLICY, Page, accepts_gzip
from tests.support import agents
from tests.support.server import serving

SCRIPT = b"console.log('limelight');" * 40


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A build of the page, with a secret file next to it."""
    built = tmp_path / "page"
    (built / "assets").mkdir(parents=True)
    (built / "index.html").write_text("<!doctype html><title>Limelight</title>")
    (built / "icon.svg").write_text("<svg/>")
    (built / "theme.js").write_text("1")
    (built / "assets" / "index-abc.js").write_bytes(SCRIPT)
    (built / "assets" / "index-abc.js.gz").write_bytes(gzip.compress(SCRIPT))
    (built / "assets" / "font-abc.woff2").write_bytes(b"wOF2")
    (tmp_path / "secret.txt").write_text("secret")
    (built / "assets" / "link.js").symlink_to(tmp_path / "secret.txt")
    monkeypatch.setattr(page_module, "FOLDER", built)
    return built


def client(folder: Path) -> httpx.AsyncClient:
    app = Starlette(routes=Page(folder).routes())
    return httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://page")


async def test_page_is_served_at_the_root_with_a_strict_policy(folder: Path, tmp_path: Path) -> None:
    async with serving(agents.talker, data=tmp_path / "data") as served:
        response = await served.http.get("/")
    assert (response.status_code, response.text) == (200, (folder / "index.html").read_text())
    assert response.headers["content-type"] == "text/html; charset=utf-8"
    assert response.headers["cache-control"] == "no-cache"
    policy = response.headers["content-security-policy"]
    assert "default-src 'none'; script-src 'self';" in policy
    assert "frame-ancestors 'none'" in policy
    assert "unsafe-inline" not in policy.split("script-src")[1].split(";")[0]
    assert response.headers["referrer-policy"] == "no-referrer"
    assert response.headers["x-content-type-options"] == "nosniff"


@pytest.mark.parametrize(
    ("path", "media_type"),
    [
        ("/icon.svg", "image/svg+xml"),
        ("/theme.js", "text/javascript; charset=utf-8"),
        ("/assets/index-abc.js", "text/javascript; charset=utf-8"),
        ("/assets/font-abc.woff2", "font/woff2"),
    ],
)
async def test_files_have_their_media_type_and_the_policy(folder: Path, path: str, media_type: str) -> None:
    async with client(folder) as http:
        response = await http.get(path)
    assert (response.status_code, response.headers["content-type"]) == (200, media_type)
    assert response.content == (folder / path.lstrip("/")).read_bytes()
    assert response.headers["content-security-policy"] == POLICY
    hashed = path.startswith("/assets/")
    assert response.headers["cache-control"] == ("public, max-age=31536000, immutable" if hashed else "no-cache")


async def test_compressed_file_is_served_if_gzip_is_accepted(folder: Path) -> None:
    async with client(folder) as http:
        small = await http.get("/assets/index-abc.js", headers={"accept-encoding": "br, gzip"})
        plain = await http.get("/assets/index-abc.js", headers={"accept-encoding": "identity"})
        alone = await http.get("/assets/font-abc.woff2", headers={"accept-encoding": "gzip"})
    assert (small.headers["content-encoding"], small.content) == ("gzip", SCRIPT)
    assert int(small.headers["content-length"]) < len(SCRIPT) == int(plain.headers["content-length"])
    assert "content-encoding" not in plain.headers
    assert "content-encoding" not in alone.headers
    assert small.headers["vary"] == plain.headers["vary"] == "Accept-Encoding"
    assert small.headers["etag"] != plain.headers["etag"]


@pytest.mark.parametrize(
    ("accepted", "taken"),
    [("gzip", True), ("br, GZIP;q=0.5", True), ("*", True), ("gzip;q=0", False), ("gzip; q=0.0", False), ("br", False)],
)
def test_accepts_gzip_reads_accept_encoding(accepted: str, taken: bool) -> None:
    assert accepts_gzip(accepted) is taken


async def test_known_etag_gets_304(folder: Path) -> None:
    async with client(folder) as http:
        first = await http.get("/")
        again = await http.get("/", headers={"if-none-match": f'"other", W/{first.headers["etag"]}'})
        other = await http.get("/", headers={"if-none-match": '"other"'})
    assert (again.status_code, again.content, again.headers["etag"]) == (304, b"", first.headers["etag"])
    assert other.status_code == 200


async def test_head_has_the_headers_of_get(folder: Path) -> None:
    async with client(folder) as http:
        for path in ("/", "/icon.svg", "/assets/index-abc.js"):
            asked, got = await http.head(path), await http.get(path)
            assert (asked.status_code, asked.content) == (200, b"")
            assert asked.headers == got.headers


@pytest.mark.parametrize(
    "path",
    [
        "/assets/../../secret.txt",
        "/assets/..%2f..%2fsecret.txt",
        "/assets/%2e%2e/%2e%2e/secret.txt",
        "/assets//etc/passwd",
        "/assets/index-abc.js.gz",
        "/assets/",
        "/index.html",
        "/.stamp",
    ],
)
async def test_paths_outside_the_page_are_not_found(folder: Path, tmp_path: Path, path: str) -> None:
    (folder / ".stamp").write_text("x")
    async with serving(agents.talker, data=tmp_path / "data") as served:
        url = httpx.URL(served.url).copy_with(raw_path=path.encode())
        response = await served.http.get(url)
    assert (response.status_code, response.json()["code"]) == (404, "not_found")


async def test_symlink_is_not_served(folder: Path) -> None:
    assert Page(folder).file("assets/link.js") is None


async def test_only_files_of_the_page_need_no_key(folder: Path, tmp_path: Path) -> None:
    async with serving(agents.talker, data=tmp_path / "data", auth__api_key="sesame") as served:
        for path in ("/", "/icon.svg", "/theme.js", "/assets/index-abc.js"):
            assert (await served.http.get(path)).status_code == 200, path
        for path in ("/docs", "/agents", "/sessions", "/icon.svg/", "/x/theme.js", "/assets"):
            assert (await served.http.get(path)).status_code == 401, path


async def test_new_build_is_loaded(folder: Path) -> None:
    async with client(folder) as http:
        await http.get("/")
        (folder / "index.html").write_text("new")
        os.utime(folder / "index.html", ns=(1, 1))
        assert (await http.get("/")).text == "new"


async def test_missing_build_is_explained(tmp_path: Path) -> None:
    async with client(tmp_path / "nothing") as http:
        response = await http.get("/")
        missing = Page(tmp_path / "nothing").file("icon.svg")
    assert response.status_code == 200
    assert "make page" in response.text
    assert 'href="docs"' in response.text
    assert "content-security-policy" in response.headers
    assert missing is None
