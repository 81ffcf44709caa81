"""The page's cookie, and pages of other sites."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx
import pytest

from limelight.auth.key_file import Keyring
from tests.server.keyed_server import Headers, House, bearer, handshake
from tests.support import agents
from tests.support.server import asking, serving


@asynccontextmanager
async def signed_in(house: House, key: str) -> AsyncGenerator[httpx.AsyncClient]:
    """A browser that has handed in its key."""
    own = {"origin": house.served.url, "sec-fetch-site": "same-origin"}
    async with httpx.AsyncClient(base_url=house.served.url, trust_env=False) as browser:
        reply = await browser.post("/auth/login", json={"key": key}, headers=own)
        assert reply.status_code == 204, reply.text
        cookie = reply.headers["set-cookie"].lower()
        assert {"httponly", "samesite=strict", "path=/"} <= set(cookie.split("; "))
        yield browser


async def test_a_key_that_is_handed_in_is_kept_by_the_browser(house: House) -> None:
    async with signed_in(house, house.key("ann")) as browser:
        assert (await browser.get("/auth/me")).json()["user"] == "ann"
        own = {"origin": house.served.url}
        assert (await browser.post("/chat", json=asking("hi"), headers=own)).status_code == 200
        assert (await browser.post("/auth/logout", headers=own)).status_code == 204
        assert (await browser.get("/auth/me")).status_code == 401


async def test_a_cookie_opens_a_socket_for_its_own_page_only(house: House) -> None:
    async with signed_in(house, house.key("ann")) as browser:
        cookie = {"cookie": "; ".join(f"{name}={value}" for name, value in browser.cookies.items())}
        assert await handshake(house.served, {**cookie, "origin": house.served.url}) == 101
        assert await handshake(house.served, {**cookie, "origin": "https://evil.example"}) == 403
        assert await handshake(house.served, cookie) == 403


async def test_a_socket_is_not_for_pages_of_other_sites_whatever_they_know(tmp_path: Path) -> None:
    friend = "https://app.example"
    async with serving(agents.echo, data=tmp_path, server__origins=[friend], auth__api_key="sesame") as served:
        for key in ("sesame", Keyring(tmp_path).create("ann", ("use",), 1)[1]):
            own: Headers = {"origin": served.url}
            elsewhere = {"origin": "https://lime.example", "sec-fetch-site": "same-origin"}  # the proxy changes `Host`
            for good in ({}, own, {"origin": friend}, elsewhere):
                assert await handshake(served, {**bearer(key), **good}) == 101, good
            for origin in ("https://evil.example", "null", "http://localhost:5173", f"{served.url}.evil.example"):
                assert await handshake(served, {**bearer(key), "origin": origin}) == 403, origin
        assert await handshake(served, {"origin": "https://evil.example"}) == 401  # who has no key learns nothing


@pytest.mark.parametrize(
    "foreign",
    [{"origin": "https://evil.example"}, {"origin": "null"}, {"sec-fetch-site": "cross-site"}, {}],
    ids=["origin", "null", "site", "silent"],
)
async def test_a_page_of_another_site_cannot_use_the_cookie(house: House, foreign: Headers) -> None:
    async with signed_in(house, house.key("ann")) as browser:
        response = await browser.post("/chat", json=asking("hi"), headers=foreign)
        assert (response.status_code, response.json()["code"]) == (403, "forbidden")


async def test_behind_a_proxy_the_browsers_own_word_counts(house: House) -> None:
    """One that asks for a password of its own, and that changes the name of the server."""
    proxied = {"authorization": "Basic YTpi", "origin": "https://lime.example", "sec-fetch-site": "same-origin"}
    async with signed_in(house, house.key("ann")) as browser:
        assert (await browser.get("/auth/me", headers=proxied)).json()["user"] == "ann"
        assert (await browser.post("/chat", json=asking("hi"), headers=proxied)).status_code == 200
        reply = await browser.post("/auth/login", json={"key": house.key("ann")}, headers=proxied)
        assert reply.status_code == 204


async def test_a_key_that_opens_no_page_is_not_kept(house: House) -> None:
    reply = await house.served.http.post("/auth/login", json={"key": house.key("root", "admin")})
    assert (reply.status_code, reply.headers.get("set-cookie")) == (403, None)


async def test_a_wrong_key_is_not_kept(house: House) -> None:
    house.key("ann")
    reply = await house.served.http.post("/auth/login", json={"key": "lml_x"})
    assert (reply.status_code, reply.json()["code"]) == (401, "unauthorized")
    assert "set-cookie" not in reply.headers
    evil = await house.served.http.post(
        "/auth/login", json={"key": house.key("ben")}, headers={"origin": "https://evil.example"}
    )
    assert evil.status_code == 403


async def test_a_revoked_key_is_no_key_in_a_cookie_either(house: House) -> None:
    key = house.key("ann")
    async with signed_in(house, key) as browser:
        house.keyring.revoke(key.split("_")[1], 2)
        assert (await browser.get("/auth/me")).status_code == 401


async def test_a_server_without_keys_says_so(house: House) -> None:
    assert (await house.served.http.get("/auth/me")).json() == {
        "user": "local",
        "name": "",
        "scopes": ["admin", "use"],
        "open": True,
    }
    reply = await house.served.http.post("/auth/login", json={"key": "whatever"})
    assert (reply.status_code, reply.headers.get("set-cookie")) == (204, None)


# Pages of other sites


async def test_other_sites_are_let_in_only_if_the_settings_name_them(tmp_path: Path) -> None:
    friend, stranger = "https://app.example", "https://evil.example"
    async with serving(agents.echo, data=tmp_path, server__origins=[friend]) as served:
        headers = bearer(Keyring(tmp_path).create("ann", ("use",), 1)[1])
        asks = {"access-control-request-method": "POST", "access-control-request-headers": "authorization"}
        allowed = await served.http.options("/chat", headers={"origin": friend, **asks})
        assert (allowed.status_code, allowed.headers["access-control-allow-origin"]) == (200, friend)
        refused = await served.http.options("/chat", headers={"origin": stranger, **asks})
        assert "access-control-allow-origin" not in refused.headers
        told = await served.http.post("/chat", json=asking("hi"), headers={"origin": friend, **headers})
        assert told.headers["access-control-allow-origin"] == friend


async def test_by_default_no_other_site_is_let_in(house: House) -> None:
    reply = await house.served.http.get("/agents", headers={"origin": "https://app.example"})
    assert not [name for name in reply.headers if name.startswith("access-control")]


async def test_whoever_insists_serves_everybody(tmp_path: Path) -> None:
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
    {"origin": "null"},
    {"sec-fetch-site": "cross-site"},
    {"origin": "http://localhost:5173", "sec-fetch-site": "same-site"},
]


@pytest.mark.parametrize("foreign", FOREIGN, ids=["both", "origin", "null", "site", "another port"])
async def test_a_page_of_another_site_changes_nothing_on_a_server_without_keys(house: House, foreign: Headers) -> None:
    http = house.served.http
    assert (await http.post("/chat", json=asking("hi", session_id="s"))).status_code == 200
    for method, path in (("POST", "/api/v2/sessions"), ("DELETE", "/sessions/s"), ("POST", "/runs/run_0/cancel")):
        problem = await house.served.problem(method, path, headers=foreign)
        assert (problem["status"], problem["code"]) == (403, "forbidden"), path
    assert [session["session_id"] for session in (await http.get("/sessions")).json()["sessions"]] == ["s"]


async def test_the_own_page_programs_and_named_sites_use_a_server_without_keys(tmp_path: Path) -> None:
    friend = "http://localhost:5173"
    async with serving(agents.echo, data=tmp_path, server__origins=[friend]) as served:
        own: list[Headers] = [{"origin": served.url}, {"origin": served.url, "sec-fetch-site": "same-origin"}]
        others: list[Headers] = [{}, {"origin": friend}, {"origin": friend, "sec-fetch-site": "same-site"}]
        for headers in (*own, *others):
            assert (await served.http.post("/api/v2/sessions", headers=headers)).status_code == 200, headers
