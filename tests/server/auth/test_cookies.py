"""The page's cookie, and requests of other sites."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx
import pytest

from limelight.auth.key_file import Keyring
from limelight.server.auth.cookies import MAX_COOKIE_BYTES, key_from_cookie
from tests.server.keyed_server import Headers, KeyedServer, bearer, handshake
from tests.support import agents
from tests.support.server import asking, client_of, serving


@asynccontextmanager
async def signed_in(keyed: KeyedServer, key: str) -> AsyncGenerator[httpx.AsyncClient]:
    """A browser that is logged in."""
    own = {"origin": keyed.served.url, "sec-fetch-site": "same-origin"}
    async with client_of(keyed.served.url) as browser:
        reply = await browser.post("/auth/login", json={"key": key}, headers=own)
        assert reply.status_code == 204, reply.text
        cookie = reply.headers["set-cookie"].lower()
        assert {"httponly", "samesite=strict", "path=/"} <= set(cookie.split("; "))
        yield browser


@pytest.mark.requirement("cookie")
async def test_login_sets_a_cookie_that_authenticates_until_logout(keyed: KeyedServer) -> None:
    async with signed_in(keyed, keyed.key("ann")) as browser:
        assert (await browser.get("/auth/me")).json()["user"] == "ann"
        own = {"origin": keyed.served.url}
        assert (await browser.post("/chat", json=asking("hi"), headers=own)).status_code == 200
        assert (await browser.post("/auth/logout", headers=own)).status_code == 204
        assert (await browser.get("/auth/me")).status_code == 401


async def test_cookie_opens_a_socket_only_for_the_own_page(keyed: KeyedServer) -> None:
    async with signed_in(keyed, keyed.key("ann")) as browser:
        cookie = {"cookie": "; ".join(f"{name}={value}" for name, value in browser.cookies.items())}
        assert await handshake(keyed.served, {**cookie, "origin": keyed.served.url}) == 101
        assert await handshake(keyed.served, {**cookie, "origin": "https://evil.example"}) == 403
        assert await handshake(keyed.served, cookie) == 403


@pytest.mark.requirement("other-sites")
async def test_cross_site_page_opens_no_socket_even_with_a_key(tmp_path: Path) -> None:
    friend = "https://app.example"
    async with serving(agents.echo, data=tmp_path, server__origins=[friend], auth__api_key="sesame") as served:
        for key in ("sesame", Keyring(tmp_path).create("ann", ("use",), 1)[1]):
            own: Headers = {"origin": served.url}
            elsewhere = {"origin": "https://lime.example", "sec-fetch-site": "same-origin"}  # the proxy changes `Host`
            for good in ({}, own, {"origin": friend}, elsewhere):
                assert await handshake(served, {**bearer(key), **good}) == 101, good
            for origin in ("https://evil.example", "null", "http://localhost:5173", f"{served.url}.evil.example"):
                assert await handshake(served, {**bearer(key), "origin": origin}) == 403, origin
        assert await handshake(served, {"origin": "https://evil.example"}) == 401  # the key is checked first


@pytest.mark.requirement("cookie")
@pytest.mark.parametrize(
    "foreign",
    [{"origin": "https://evil.example"}, {"origin": "null"}, {"sec-fetch-site": "cross-site"}, {}],
    ids=["origin", "null", "site", "silent"],
)
async def test_cross_site_request_with_the_cookie_is_forbidden(keyed: KeyedServer, foreign: Headers) -> None:
    async with signed_in(keyed, keyed.key("ann")) as browser:
        response = await browser.post("/chat", json=asking("hi"), headers=foreign)
        assert (response.status_code, response.json()["code"]) == (403, "forbidden")


async def test_sec_fetch_site_counts_when_a_proxy_changes_the_host(keyed: KeyedServer) -> None:
    """The proxy asks for a password and changes the host name."""
    proxied = {"authorization": "Basic YTpi", "origin": "https://lime.example", "sec-fetch-site": "same-origin"}
    async with signed_in(keyed, keyed.key("ann")) as browser:
        assert (await browser.get("/auth/me", headers=proxied)).json()["user"] == "ann"
        assert (await browser.post("/chat", json=asking("hi"), headers=proxied)).status_code == 200
        reply = await browser.post("/auth/login", json={"key": keyed.key("ann")}, headers=proxied)
        assert reply.status_code == 204


async def test_login_refuses_a_key_without_the_scope_use(keyed: KeyedServer) -> None:
    reply = await keyed.served.http.post("/auth/login", json={"key": keyed.key("root", "admin")})
    assert (reply.status_code, reply.headers.get("set-cookie")) == (403, None)


async def test_login_refuses_a_wrong_key(keyed: KeyedServer) -> None:
    keyed.key("ann")
    reply = await keyed.served.http.post("/auth/login", json={"key": "lml_x"})
    assert (reply.status_code, reply.json()["code"]) == (401, "unauthorized")
    assert "set-cookie" not in reply.headers
    evil = await keyed.served.http.post(
        "/auth/login", json={"key": keyed.key("ben")}, headers={"origin": "https://evil.example"}
    )
    assert evil.status_code == 403


async def test_revoked_key_in_a_cookie_is_refused(keyed: KeyedServer) -> None:
    key = keyed.key("ann")
    async with signed_in(keyed, key) as browser:
        keyed.keyring.revoke(key.split("_")[1], 2)
        assert (await browser.get("/auth/me")).status_code == 401


async def test_me_reports_an_open_server(keyed: KeyedServer) -> None:
    assert (await keyed.served.http.get("/auth/me")).json() == {
        "user": "local",
        "name": "",
        "scopes": ["admin", "use"],
        "open": True,
    }
    reply = await keyed.served.http.post("/auth/login", json={"key": "whatever"})
    assert (reply.status_code, reply.headers.get("set-cookie")) == (204, None)


def test_key_is_found_among_the_cookies_of_other_servers() -> None:
    headers = {b"host": b"127.0.0.1:8000", b"cookie": b'a="b; c=d"; limelight_key_8000=ll_1 ; limelight_key_80000=x; e'}
    assert key_from_cookie(headers) == "ll_1"
    assert key_from_cookie({**headers, b"host": b"127.0.0.1:8001"}) is None


def test_quoted_values_are_not_decoded() -> None:
    """Python decodes them in quadratic time: 60 KB took seconds."""
    headers = {b"host": b"127.0.0.1:8000", b"cookie": b'limelight_key_8000="\\"\\""'}
    assert key_from_cookie(headers) == '"\\"\\""'


def test_header_with_very_large_cookies_is_ignored() -> None:
    for others, expected in ((b"a=b; " * 10, "ll_1"), (b"a=b; " * (MAX_COOKIE_BYTES // 5), None)):
        headers = {b"host": b"127.0.0.1:8000", b"cookie": others + b"limelight_key_8000=ll_1"}
        assert key_from_cookie(headers) == expected


# Pages of other sites


async def test_cors_allows_only_origins_of_the_settings(tmp_path: Path) -> None:
    friend, stranger = "https://app.example", "https://evil.example"
    async with serving(agents.echo, data=tmp_path, server__origins=[friend]) as served:
        headers = bearer(Keyring(tmp_path).create("ann", ("use",), 1)[1])
        asks = {"access-control-request-method": "POST", "access-control-request-headers": "authorization"}
        allowed = await served.http.options("/chat", headers={"origin": friend, **asks})
        assert (allowed.status_code, allowed.headers["access-control-allow-origin"]) == (200, friend)
        refused = await served.http.options("/chat", headers={"origin": stranger, **asks})
        assert "access-control-allow-origin" not in refused.headers
        reply = await served.http.post("/chat", json=asking("hi"), headers={"origin": friend, **headers})
        assert reply.headers["access-control-allow-origin"] == friend


@pytest.mark.requirement("other-sites")
async def test_cors_is_off_by_default(keyed: KeyedServer) -> None:
    reply = await keyed.served.http.get("/agents", headers={"origin": "https://app.example"})
    assert not [name for name in reply.headers if name.startswith("access-control")]


async def test_insecure_server_answers_other_hosts(tmp_path: Path) -> None:
    async with serving(agents.echo, data=tmp_path, auth__insecure_no_auth=True) as served:
        assert (await served.http.get("/agents", headers={"host": "limelight.example"})).status_code == 200
        assert await handshake(served, {"origin": "https://evil.example"}) == 403
        assert await handshake(served, {"origin": "http://localhost:5173"}) == 403
        assert await handshake(served, {}) == 101
        evil = await served.http.post("/api/v2/sessions", headers={"origin": "https://evil.example"})
        assert evil.status_code == 403


FOREIGN = [
    {"origin": "http://evil.example", "sec-fetch-site": "cross-site"},
    {"origin": "http://evil.example"},
    {"origin": "http://127.0.0.1.evil.example"},
    {"origin": "null"},
    {"origin": "file://"},
    {"sec-fetch-site": "cross-site"},
    {"origin": "http://localhost:5173", "sec-fetch-site": "same-site"},
]


@pytest.mark.requirement("other-sites")
@pytest.mark.parametrize("foreign", FOREIGN, ids=str)
async def test_open_server_refuses_unsafe_requests_of_cross_site_pages(keyed: KeyedServer, foreign: Headers) -> None:
    http = keyed.served.http
    assert (await http.post("/chat", json=asking("hi", session_id="s"))).status_code == 200
    for method, path in (("POST", "/api/v2/sessions"), ("DELETE", "/sessions/s"), ("POST", "/runs/run_0/cancel")):
        problem = await keyed.served.problem(method, path, headers=foreign)
        assert (problem["status"], problem["code"]) == (403, "forbidden"), path
    assert await handshake(keyed.served, foreign) == 403
    assert [session["session_id"] for session in (await http.get("/sessions")).json()["sessions"]] == ["s"]


async def test_open_server_serves_its_page_programs_and_named_origins(tmp_path: Path) -> None:
    friend = "http://localhost:5173"
    async with serving(agents.echo, data=tmp_path, server__origins=[friend]) as served:
        own: list[Headers] = [{"origin": served.url}, {"origin": served.url, "sec-fetch-site": "same-origin"}]
        others: list[Headers] = [{}, {"origin": friend}, {"origin": friend, "sec-fetch-site": "same-site"}]
        for headers in (*own, *others):
            assert (await served.http.post("/api/v2/sessions", headers=headers)).status_code == 200, headers
            assert await handshake(served, headers) == 101, headers
