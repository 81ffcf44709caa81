"""A server below a root path: behind a proxy that strips it or not, and mounted into another application."""

import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import msgspec
import pytest
from fastapi import FastAPI
from websockets.asyncio.client import connect

from limelight.config import load_settings
from limelight.errors import SetupError
from limelight.models import LOCAL_OWNER, SessionRef
from limelight.server.app import create_app
from limelight.server.auth.middleware import LOGIN_PATHS
from limelight.server.middleware.root_path import strip_root
from limelight.server.openapi import openapi
from limelight.server.routes import ENDPOINTS
from tests.server.keyed_server import maker
from tests.support import agents
from tests.support.server import Served, asking, client_of, frames, offer, serving

KEY = {"authorization": "Bearer sesame"}
ROOT = "/team/limelight"


@pytest.fixture
async def served(tmp_path: Path) -> AsyncGenerator[Served]:
    """A server with a root path."""
    settings: dict[str, Any] = {"server__root_path": ROOT, "auth__api_key": "sesame"}
    async with serving(agents.echo, agents.big, maker, data=tmp_path, **settings) as served:
        yield served


@pytest.mark.parametrize(
    ("path", "found"),
    [("/a/b", "/b"), ("/a", ""), ("/a/", "/"), ("/ab", "/ab"), ("/b/a", "/b/a"), ("/", "/"), ("/a/a/b", "/a/b")],
)
def test_below_strips_the_root_from_paths_below_it(path: str, found: str) -> None:
    assert strip_root(path, "/a") == found
    assert strip_root(path, "") == path


# The setting


def with_root(root: str) -> Any:
    return load_settings(environ={"LIMELIGHT_ROOT_PATH": root, "LIMELIGHT_API_KEY": "sesame"})


@pytest.mark.parametrize(
    ("given", "root"),
    [("", ""), ("/", ""), ("limelight", "/limelight"), ("/limelight/", "/limelight"), (" /a//b ", "/a/b")],
)
def test_root_path_setting_is_normalized(given: str, root: str) -> None:
    assert create_app(with_root(given), [offer(agents.echo)]).state.root == root


@pytest.mark.parametrize(
    "given", ["https://host/limelight", "/a b", "/a?b", "/a#b", "/..", "/a/../b", "/.", "/ä", "/a%20b", "/a" * 101]
)
def test_invalid_root_path_is_refused(given: str) -> None:
    with pytest.raises(SetupError, match=r"LIMELIGHT_ROOT_PATH.*write it as /limelight"):
        create_app(with_root(given), [offer(agents.echo)])


@pytest.mark.parametrize("given", ["/agents", "/runs/x", "/api", "/api/v2", "/docs", "/assets", "/health"])
def test_root_path_that_begins_an_own_route_is_refused(given: str) -> None:
    with pytest.raises(SetupError, match="choose another"):
        create_app(with_root(given), [offer(agents.echo)])


def test_root_path_beside_own_routes_is_accepted() -> None:
    assert create_app(with_root("/api/limelight"), [offer(agents.echo)]).state.root == "/api/limelight"


# Behind a proxy that strips the root or does not


@pytest.mark.parametrize("stripped", [True, False], ids=["stripped", "kept"])
async def test_every_route_works_below_the_root_and_needs_the_key(served: Served, stripped: bool) -> None:
    base = served.url.removesuffix(ROOT) if stripped else served.url
    async with client_of(base) as http:
        for path in ("/health", "/", "/theme.js"):
            assert (await http.get(path)).status_code == 200, path
        for endpoint in (e for e in ENDPOINTS if not e.public and e.path not in LOGIN_PATHS):
            refused = await http.request(endpoint.method, endpoint.path)
            assert refused.status_code == 401, endpoint.path
            assert refused.json()["type"] == f"{ROOT}/docs#error-unauthorized"
        assert (await http.get("/agents", headers=KEY)).json()["agents"][0]["name"] == "echo"


async def test_root_without_slash_redirects_to_the_page(served: Served) -> None:
    reply = await served.http.get(served.url)
    assert (reply.status_code, reply.headers["location"]) == (307, f"{served.url}/")


async def test_problem_types_contain_the_root(served: Served) -> None:
    for method, path, code in (
        ("GET", "/nowhere", "not_found"),
        ("PUT", "/agents", "method_not_allowed"),
        ("GET", "/runs/run_0", "run_not_found"),
    ):
        assert (await served.problem(method, path, headers=KEY))["type"] == f"{ROOT}/docs#error-{code}"


def broken(_: object) -> object:
    raise RuntimeError("broken on purpose")


async def test_problem_type_of_an_unexpected_error_contains_the_root(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = load_settings(
        environ={"LIMELIGHT_ROOT_PATH": ROOT, "LIMELIGHT_API_KEY": "sesame", "LIMELIGHT_DATA": str(tmp_path)}
    )
    app = create_app(settings, [offer(agents.echo)])
    monkeypatch.setattr(app.state.runtime.agents.__class__, "__iter__", broken)
    transport = httpx.ASGITransport(app, raise_app_exceptions=False)
    async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as http:
        reply = await http.get("/agents", headers=KEY)
    await app.state.runtime.stop()
    assert (reply.status_code, reply.json()["type"]) == (500, f"{ROOT}/docs#error-internal")


async def test_documents_contain_the_root(served: Served) -> None:
    assert (await served.http.get("/openapi.json", headers=KEY)).json()["servers"] == [{"url": ROOT}]
    assert json.loads(openapi(ENDPOINTS))["servers"] == [{"url": "/"}]
    socket = (await served.http.get("/api/v2/asyncapi.json", headers=KEY)).json()
    assert socket["channels"]["session"]["address"].startswith(f"{ROOT}/api/v2/ws/")
    page = (await served.http.get("/docs", headers=KEY)).text
    assert f"http://127.0.0.1:8000{ROOT}/agents" in page
    assert 'href="openapi.json"' in page


# Links in responses


@pytest.mark.requirement("links-below-root")
@pytest.mark.parametrize("format_", ["typed", "records", "tool_calls", "v2"])
async def test_result_links_of_every_format_lead_to_results(served: Served, format_: str) -> None:
    found: list[str] = []
    body = asking("go", agent="big")
    async with served.http.stream("POST", f"/chat/stream?format={format_}", json=body, headers=KEY) as response:
        async for frame in frames(response):
            found += links_in(frame.data)
    assert found
    for link in found:
        assert link.startswith(f"{ROOT}/runs/"), link
        reply = await served.http.get(httpx.URL(served.url).join(link), headers=KEY)
        assert reply.status_code == 200, link


@pytest.mark.parametrize("format_", ["typed", "v2"])
async def test_artifact_links_lead_to_files(served: Served, format_: str) -> None:
    body = asking("go", agent="maker")
    async with served.http.stream("POST", f"/chat/stream?format={format_}", json=body, headers=KEY) as response:
        async for frame in frames(response):
            about: dict[str, Any] = frame.data.get("data") or frame.data.get("metadata") or {}
            if "artifact_id" in about:
                reply = await served.http.get(httpx.URL(served.url).join(about["url"]), headers=KEY)
                assert (reply.status_code, reply.content) == (200, b"a note")
                assert about["url"].startswith(f"{ROOT}/artifacts/")
                return
            assert "approval_id" not in about, "the run waits, and there was no file"
    raise AssertionError("no file came")


async def test_log_contains_links_without_the_root(served: Served) -> None:
    """A server with another root can serve the same log."""
    answer = (await served.http.post("/chat", json=asking("go", agent="big"), headers=KEY)).json()
    assert answer["tools"]
    assert all(tool["result_url"].startswith(f"{ROOT}/runs/") for tool in answer["tools"])
    ref = SessionRef(LOCAL_OWNER, answer["session_id"])
    records = await served.runtime.store.records(ref, after=0, limit=1000)
    links = links_in(json.loads(msgspec.json.encode(records)))
    assert links
    assert all(link.startswith("/runs/") for link in links)


async def test_viewers_with_different_roots_do_not_share_frames(tmp_path: Path) -> None:
    """One application that is mounted twice."""
    settings = load_settings(environ={"LIMELIGHT_API_KEY": "sesame", "LIMELIGHT_DATA": str(tmp_path)})
    app = create_app(settings, [offer(agents.big)])
    host = FastAPI()
    host.mount("/a", app)
    host.mount("/b", app)
    async with httpx.AsyncClient(transport=httpx.ASGITransport(host), base_url="http://127.0.0.1") as http:
        run_id = (await http.post("/a/chat", json=asking("go"), headers=KEY)).json()["run_id"]
        for place in ("/a", "/b"):
            reply = await http.get(f"{place}/runs/{run_id}/stream", headers=KEY)
            assert f'"result_url":"{place}/runs/' in reply.text
            refused = await http.get(f"{place}/agents")
            assert refused.json()["type"] == f"{place}/docs#error-unauthorized"
    await app.state.runtime.stop()


def links_in(value: Any) -> list[str]:
    """All values of `result_url` in a JSON value."""
    match value:
        case {**fields}:
            own = [fields["result_url"]] if fields.get("result_url") else []
            return own + [link for one in fields.values() for link in links_in(one)]
        case [*items]:
            return [link for one in items for link in links_in(one)]
        case _:
            return []


# The socket and the page's cookie


@pytest.mark.parametrize("stripped", [True, False], ids=["stripped", "kept"])
async def test_websocket_url_of_a_session_can_be_opened(served: Served, stripped: bool) -> None:
    made = (await served.http.post("/api/v2/sessions", headers=KEY)).json()
    assert made["websocket_url"].startswith(f"{ROOT}/api/v2/ws/")
    path = strip_root(made["websocket_url"], ROOT) if stripped else made["websocket_url"]
    origin = served.url.removesuffix(ROOT).replace("http", "ws", 1)
    async with connect(origin + path, additional_headers=KEY, proxy=None) as socket:
        assert made["session_id"] in str(await socket.recv())


async def test_cookie_is_limited_to_the_root(served: Served) -> None:
    own = {"origin": served.url.removesuffix(ROOT), "sec-fetch-site": "same-origin"}
    reply = await served.http.post("/auth/login", json={"key": "sesame"}, headers=own)
    name, _, rest = reply.headers["set-cookie"].partition("=")
    assert f"Path={ROOT}/" in rest.split("; ")
    assert name.endswith("_team.limelight")
    assert (await served.http.get("/auth/me")).status_code == 200
    gone = await served.http.post("/auth/logout", headers=own)
    assert f"Path={ROOT}/" in gone.headers["set-cookie"].split("; ")
    assert (await served.http.get("/auth/me")).status_code == 401


async def test_cookie_of_another_server_at_the_root_is_ignored(served: Served) -> None:
    """A browser sends both cookies in any order."""
    reply = await served.http.post("/auth/login", json={"key": "sesame"})
    ours = reply.headers["set-cookie"].partition(";")[0]
    port = httpx.URL(served.url).port
    for cookie in (f"{ours}; limelight_key_{port}=other", f"limelight_key_{port}=other; {ours}"):
        async with client_of(served.url) as browser:
            assert (await browser.get("/auth/me", headers={"cookie": cookie})).status_code == 200


# Mounted into another application


@asynccontextmanager
async def mounted(tmp_path: Path, outer_root: str = "") -> AsyncGenerator[httpx.AsyncClient]:
    settings = load_settings(environ={"LIMELIGHT_API_KEY": "sesame", "LIMELIGHT_DATA": str(tmp_path)})
    limelight = create_app(settings, [offer(agents.big)])
    app = FastAPI()
    app.mount("/limelight", limelight)
    transport = httpx.ASGITransport(app, root_path=outer_root)  # as an ASGI server with a root path does
    async with httpx.AsyncClient(transport=transport, base_url=f"http://127.0.0.1{outer_root}/limelight") as http:
        yield http
    await limelight.state.runtime.stop()


@pytest.mark.parametrize("outer_root", ["", "/apps"])
async def test_mounted_server_uses_the_path_of_its_mount(tmp_path: Path, outer_root: str) -> None:
    async with mounted(tmp_path, outer_root) as http:
        root = f"{outer_root}/limelight"
        refused = await http.get("/agents")
        assert (refused.status_code, refused.json()["type"]) == (401, f"{root}/docs#error-unauthorized")
        assert (await http.get("/")).status_code == 200
        answer = (await http.post("/chat", json=asking("go"), headers=KEY)).json()
        link = answer["tools"][0]["result_url"]
        assert link.startswith(f"{root}/runs/")
        assert (await http.get(http.base_url.join(link), headers=KEY)).status_code == 200
        assert (await http.get("/openapi.json", headers=KEY)).json()["servers"] == [{"url": root}]
        reply = await http.post("/auth/login", json={"key": "sesame"})
        assert f"Path={root}/" in reply.headers["set-cookie"].split("; ")
