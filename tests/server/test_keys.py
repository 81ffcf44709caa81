"""Keys on a running server: every route and every socket, with no key, a wrong one, a revoked one, another user's, and
one without the scope."""

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import pytest
from websockets.asyncio.client import connect
from websockets.exceptions import InvalidStatus

from limelight.access.keyring import Keyring
from limelight.access.scopes import Scope
from limelight.config import load_settings
from limelight.errors import SetupError
from limelight.events import AnyEvent, ToolFinished, ToolStarted
from limelight.messages import Message
from limelight.server.app import create_app
from limelight.server.auth import DOORS, PROBES
from limelight.server.endpoint import Endpoint
from limelight.server.gate import Gate
from limelight.server.routes import ENDPOINTS
from limelight.sources.base import Context, FileMade
from tests import agents
from tests.server.v2.sockets import socket
from tests.serving import Served, asking, frames, offer, serving

Headers = dict[str, str]


class House(NamedTuple):
    """A server with keys."""

    served: Served
    keyring: Keyring

    def key(self, user: str, *scopes: Scope) -> str:
        return self.keyring.create(user, scopes or ("use",), 1)[1]

    def headers(self, user: str, *scopes: Scope) -> Headers:
        return bearer(self.key(user, *scopes))


@pytest.fixture
async def house(tmp_path: Path) -> AsyncIterator[House]:
    async with serving(agents.echo, maker, data=tmp_path) as served:
        yield House(served, Keyring(tmp_path))


async def maker(messages: list[Message], ctx: Context) -> AsyncIterator[str | AnyEvent | FileMade]:
    """Calls a tool, makes a file, and asks a person."""
    yield ToolStarted(call_id="c", name="make", args={})
    yield ToolFinished(call_id="c", result="made")
    yield FileMade(name="note.txt", data=b"a note", media_type="text/plain")
    await ctx.approve("send", {})
    yield "sent"


def bearer(key: str) -> Headers:
    return {"authorization": f"Bearer {key}"}


def guarded() -> list[Endpoint]:
    return [endpoint for endpoint in ENDPOINTS if endpoint.path not in PROBES | DOORS]


def filled(path: str, session_id: str = "s", run_id: str = "run_0") -> str:
    names = {"session_id": session_id, "run_id": run_id}
    for part in ("call_id:path", "call_id", "approval_id", "artifact_id", "name", "part"):
        path = path.replace(f"{{{part}}}", "x")
    for name, value in names.items():
        path = path.replace(f"{{{name}}}", value)
    assert "{" not in path, path
    return path


async def handshake(served: Served, headers: Headers, session_id: str = "s") -> int:
    """The status with which the server answers a socket."""
    url = f"{served.url.replace('http', 'ws', 1)}/api/v2/ws/{session_id}"
    try:
        async with connect(url, additional_headers=headers, proxy=None):
            return 101
    except InvalidStatus as refusal:
        return refusal.response.status_code


@pytest.mark.parametrize("kind", ["none", "wrong", "basic", "revoked", "empty"])
async def test_without_a_key_that_holds_nothing_is_to_be_had(house: House, kind: str) -> None:
    revoked = house.key("ann")
    house.keyring.revoke(revoked.split("_")[1], 2)
    headers = {
        "none": {},
        "wrong": bearer("_".join([house.key("ann").rpartition("_")[0], house.key("ben").rpartition("_")[2]])),
        "basic": {"authorization": f"Basic {house.key('ben')}"},
        "revoked": bearer(revoked),
        "empty": {"authorization": "Bearer"},
    }[kind]
    for endpoint in guarded():
        response = await house.served.http.request(endpoint.method, filled(endpoint.path), headers=headers)
        assert (response.status_code, response.json()["code"]) == (401, "unauthorized"), endpoint.path
        assert response.headers["www-authenticate"] == "Bearer"
    assert await handshake(house.served, headers) == 401


async def test_a_key_that_is_made_beside_a_server_closes_it_at_once(house: House) -> None:
    assert (await house.served.http.get("/agents")).status_code == 200
    headers = house.headers("ann")
    assert (await house.served.http.get("/agents")).status_code == 401
    assert (await house.served.http.get("/agents", headers=headers)).status_code == 200
    for probe in PROBES:
        assert (await house.served.http.get(probe)).status_code == 200


async def test_what_is_one_users_is_not_there_for_another(house: House) -> None:
    ann, ben = house.headers("ann"), house.headers("ben")
    names = await everything(house.served, ann)
    routes = [endpoint for endpoint in guarded() if "{" in endpoint.path and endpoint.scope != "admin"]

    async def answered(endpoint: Endpoint, headers: Headers) -> int:
        body = {"title": "mine"} if endpoint.method == "PATCH" else {"decision": "approve"}
        options: dict[str, Any] = {"json": body} if endpoint.body is not None else {}
        path = named(endpoint.path, names)
        if endpoint.reply == "text/event-stream":
            options["params"] = {"after": "1"}
        async with house.served.http.stream(endpoint.method, path, headers=headers, **options) as response:
            return response.status_code

    for endpoint in routes:
        assert await answered(endpoint, ben) == 404, (endpoint.method, endpoint.path)
    # All of it is there: its owner gets it. What ends or removes something comes last.
    for endpoint in sorted(routes, key=lambda one: (one.method == "DELETE", one.path.endswith("/cancel"))):
        if (
            endpoint.path != "/api/v2/sessions/{session_id}" or endpoint.method != "DELETE"
        ):  # it was removed just before
            assert await answered(endpoint, ann) in (200, 204), (endpoint.method, endpoint.path)


async def test_lists_and_sockets_show_ones_own(house: House) -> None:
    ann, ben = house.headers("ann"), house.headers("ben")
    await house.served.http.post("/chat", json=asking("hi", session_id="s"), headers=ann)
    assert (await house.served.http.get("/sessions", headers=ben)).json()["sessions"] == []
    async with socket(house.served, "s", headers=ben) as watching:
        assert (await watching.hear())["state"]["message_count"] == 0  # a session of ben's own, of the same name
    assert (await house.served.http.get("/sessions/s", headers=ann)).json()["turns"] == 1


async def everything(served: Served, headers: Headers) -> dict[str, str]:
    """A session with a run that has a call, a file and an open question: the names of all of them."""
    names = {"session_id": "s"}
    body = asking("go", agent="maker", session_id="s")
    async with served.http.stream("POST", "/chat/stream?format=records", json=body, headers=headers) as response:
        async for frame in frames(response):
            event = frame.data["event"]
            names["run_id"] = frame.data["run_id"]
            names |= {key: event[key] for key in ("call_id", "artifact_id", "approval_id") if event.get(key)}
            if event["kind"] == "approval_requested":
                return names
    raise AssertionError("it asked for nothing")


def named(path: str, names: dict[str, str]) -> str:
    for name, value in names.items():
        path = path.replace(f"{{{name}}}", value).replace(f"{{{name}:path}}", value)
    assert "{" not in path, path
    return path


async def test_a_key_that_is_revoked_ends_its_sockets_with_their_next_word(house: House) -> None:
    key = house.key("ann")
    async with socket(house.served, "s", headers=bearer(key)) as watching:
        await watching.hear()
        house.keyring.revoke(key.split("_")[1], 2)
        await watching.say("query", query="still here?")
        assert (await watching.error())[1] == "unauthorized"
    assert (await house.served.http.get("/sessions/s", headers=house.headers("ann"))).json()["turns"] == 0


async def test_a_socket_of_an_open_server_ends_with_the_first_key(house: House) -> None:
    async with socket(house.served, "s") as watching:
        await watching.hear()
        house.key("ann")
        await watching.say("query", query="still here?")
        assert (await watching.error())[1] == "unauthorized"


@pytest.mark.parametrize("user_id", ["%ff", "%00", "a%0Ab", "x" * 257])
async def test_a_user_who_cannot_be_told_from_another_is_refused(house: House, user_id: str) -> None:
    headers = house.headers("pipe", "use", "on-behalf-of")
    problem = await house.served.problem("GET", "/auth/me", headers={**headers, "x-limelight-user-id": user_id})
    assert (problem["status"], problem["errors"][0]["path"]) == (400, "X-Limelight-User-Id")


async def test_a_blank_header_names_nobody(house: House) -> None:
    headers = {**house.headers("pipe", "use", "on-behalf-of"), "x-limelight-user-id": "%20"}
    told = await house.served.http.post("/chat", json=asking("hi", user_id=" cleo "), headers=headers)
    assert " for cleo/ in " in told.json()["message"]["content"]


async def test_a_key_without_the_scope_is_refused_everywhere(house: House) -> None:
    headers = {"use": house.headers("ann", "admin"), "admin": house.headers("ann", "use")}
    for endpoint in guarded():
        if endpoint.scope is None:
            continue
        path, lacking = filled(endpoint.path), headers[endpoint.scope]
        response = await house.served.http.request(endpoint.method, path, headers=lacking)
        assert (response.status_code, response.json()["code"]) == (403, "forbidden"), endpoint.path
        assert f"{endpoint.scope!r}" in response.json()["detail"]
    assert await handshake(house.served, headers["use"]) == 403
    assert [endpoint.path for endpoint in guarded() if endpoint.scope is None] == ["/auth/me"]


async def test_only_a_key_that_may_speaks_for_others(house: House) -> None:
    named = {"x-limelight-user-id": "cleo", "x-limelight-user-name": "Cleo"}

    async def told(headers: Headers, **body: str) -> str:
        reply = await house.served.http.post("/chat", json=asking("hi", **body), headers=headers)
        return reply.json()["message"]["content"].partition(" for ")[2].partition(" in ")[0]

    plain, pipe = house.headers("ann"), house.headers("pipe", "use", "on-behalf-of")
    assert await told({**plain, **named}) == "ann/"
    assert await told(plain, user_id="cleo") == "ann/"
    assert await told({**pipe, **named}) == "cleo/Cleo"
    assert await told(pipe, user_id="dora") == "dora/"
    assert await told(pipe) == "pipe/"


async def test_the_key_of_the_settings_may_everything(tmp_path: Path) -> None:
    async with serving(agents.echo, data=tmp_path, auth__api_key="sesame") as served:
        me = (await served.http.get("/auth/me", headers=bearer("sesame"))).json()
        assert me == {"user": "local", "name": "", "scopes": ["admin", "on-behalf-of", "use"], "open": False}
        other = Keyring(tmp_path).create("ann", ("use",), 1)[1]
        assert (await served.http.get("/auth/me", headers=bearer(other))).json()["user"] == "ann"


@pytest.mark.parametrize("broken", ["[{", "[]", None])
@pytest.mark.parametrize("api_key", ["", "sesame"])
async def test_keys_that_cannot_be_read_open_nothing(tmp_path: Path, api_key: str, broken: str | None) -> None:
    async with serving(agents.echo, data=tmp_path, auth__api_key=api_key) as served:
        key = Keyring(tmp_path).create("ann", ("use",), 1)[1]
        assert (await served.http.get("/agents", headers=bearer(key))).status_code == 200
        file = tmp_path / "keys.json"
        file.unlink() if broken is None else file.write_text(broken)
        for response in (
            await served.http.get("/agents", headers=bearer(key)),
            await served.http.post("/auth/login", json={"key": key}),
        ):
            assert (response.status_code, response.json()["code"]) == (503, "store_unavailable")
            assert "keys.json" not in response.text
        if api_key:
            assert (await served.http.get("/agents", headers=bearer(api_key))).status_code == 200


@pytest.mark.parametrize("api_key", ["schlüssel", "two words", "a\nb"])
def test_a_key_that_cannot_be_sent_is_refused_at_the_start(tmp_path: Path, api_key: str) -> None:
    with pytest.raises(SetupError, match="LIMELIGHT_API_KEY"):
        Gate(api_key, Keyring(tmp_path))


@pytest.mark.parametrize("origin", ["*", "https://a.example/", "a.example", "https://a.example/x"])
def test_what_is_no_origin_is_refused_at_the_start(tmp_path: Path, origin: str) -> None:
    overrides: Any = {("store", "data"): str(tmp_path), ("server", "origins"): [origin]}
    with pytest.raises(SetupError, match=r"server\.origins"):
        create_app(load_settings(environ={}, overrides=overrides), [offer(agents.echo)])


async def test_an_administrator_lists_and_deletes_and_reads_nothing(house: House) -> None:
    ann, admin = house.headers("ann"), house.headers("root", "admin")
    for session_id in ("one", "two"):
        await house.served.http.post("/chat", json=asking("hi", session_id=session_id), headers=ann)
    users = (await house.served.http.get("/admin/users", headers=admin)).json()
    assert [(user["user"], user["sessions"]) for user in users["users"]] == [("ann", 2)]
    listed = (await house.served.http.get("/admin/sessions", params={"user": "ann"}, headers=admin)).json()
    assert [session["session_id"] for session in listed["sessions"]] == ["two", "one"]
    assert (await house.served.http.get("/sessions/one", headers=admin)).status_code == 403
    gone = await house.served.http.delete("/admin/sessions/one", params={"user": "ann"}, headers=admin)
    assert gone.status_code == 204
    assert (await house.served.http.get("/sessions/one", headers=ann)).status_code == 404
    again = await house.served.problem("DELETE", "/admin/sessions/one", params={"user": "ann"}, headers=admin)
    assert again["code"] == "session_not_found"
    unnamed = await house.served.problem("GET", "/admin/sessions", headers=admin)
    assert (unnamed["status"], unnamed["errors"][0]["path"]) == (400, "user")


async def test_users_come_in_pages(house: House) -> None:
    for name in ("ann", "ben", "cleo"):
        await house.served.http.post("/chat", json=asking("hi", session_id="s"), headers=house.headers(name))
    seen: list[str] = []
    after: str | None = ""
    while after is not None:
        params = {"limit": "2", "after": after}
        page = (await house.served.http.get("/admin/users", params=params, headers=house.headers("r", "admin"))).json()
        seen += [user["user"] for user in page["users"]]
        after = page["next"]
    assert seen == ["ann", "ben", "cleo"]


# The page's cookie


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
        assert await handshake(served, {}) == 101
