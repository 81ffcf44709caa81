"""Authentication: keys, owners, and an open server that answers only its own machine."""

from pathlib import Path

import httpx
import pytest

from limelight.config import load_settings
from limelight.server.app import create_app
from limelight.server.auth.middleware import PROBE_PATHS, is_loopback
from tests.support import agents
from tests.support.server import asking, offer, serving

KEY = {"authorization": "Bearer sesame"}


@pytest.mark.requirement("key-required")
async def test_only_the_probes_need_no_key_besides_the_page(tmp_path: Path) -> None:
    async with serving(agents.talker, data=tmp_path, auth__api_key="sesame") as served:
        for headers in ({}, {"authorization": "Bearer wrong"}, {"authorization": "Basic sesame"}):
            for path in PROBE_PATHS:
                assert (await served.http.get(path, headers=headers)).status_code == 200, path
            for path in ("/agents", "/docs", "/nowhere", "/assetsnot"):
                response = await served.http.get(path, headers=headers)
                assert (response.status_code, response.json()["code"]) == (401, "unauthorized"), path
        assert (await served.http.get("/agents", headers=KEY)).status_code == 200


@pytest.mark.requirement("owner-only")
async def test_session_is_visible_only_to_its_owner(tmp_path: Path) -> None:
    async with serving(agents.echo, data=tmp_path, auth__api_key="sesame") as served:
        ann = {**KEY, "x-limelight-user-id": "ann", "x-limelight-user-name": "Ann%20%C3%84"}
        ben = {**KEY, "x-limelight-user-id": "ben"}
        answer = (await served.http.post("/chat", json=asking("hi", session_id="s"), headers=ann)).json()
        assert answer["message"]["content"] == "user:hi for ann/Ann Ä in s"
        for path in (
            "/sessions/s",
            "/sessions/s/stream",
            f"/runs/{answer['run_id']}",
            f"/runs/{answer['run_id']}/answer",
        ):
            assert (await served.problem("GET", path, headers=ben))["status"] == 404, path
        assert (await served.http.get("/sessions", headers=ben)).json()["sessions"] == []
        mine = (await served.http.post("/chat", json=asking("me", session_id="s"), headers=ben)).json()
        assert mine["message"]["content"] == "user:me for ben/ in s"
        assert (await served.http.get("/sessions/s", headers=ann)).json()["title"] == "hi"
        named = await served.http.post("/chat", json=asking("x", user_id="cleo"), headers=KEY)
        assert "for cleo/" in named.json()["message"]["content"]


async def test_open_server_ignores_user_ids_of_requests(tmp_path: Path) -> None:
    async with serving(agents.echo, data=tmp_path) as served:
        headers = {"x-limelight-user-id": "ann"}
        answer = (await served.http.post("/chat", json=asking("hi", user_id="ann"), headers=headers)).json()
        assert " for local/ in " in answer["message"]["content"]


@pytest.mark.requirement("open-server-local")
async def test_open_server_refuses_other_host_names(tmp_path: Path) -> None:
    async with serving(agents.echo, data=tmp_path) as served:
        for host in ("evil.example", "evil.example:8000", "10.0.0.1", "localhost.evil.example"):
            for path in ("/agents", "/"):
                problem = await served.problem("GET", path, headers={"host": host})
                assert (problem["status"], problem["code"]) == (403, "forbidden")
        for host in ("localhost:8000", "127.0.0.1", "[::1]:9", "app.localhost"):
            assert (await served.http.get("/agents", headers={"host": host})).status_code == 200


@pytest.mark.requirement("open-server-local")
async def test_open_server_refuses_other_machines(tmp_path: Path) -> None:
    settings = load_settings(environ={}, overrides={("store", "data"): str(tmp_path)})
    app = create_app(settings, [offer(agents.echo)])
    stranger = httpx.ASGITransport(app, client=("192.0.2.7", 1234))
    async with httpx.AsyncClient(transport=stranger, base_url="http://127.0.0.1") as http:
        assert (await http.get("/agents")).status_code == 403
        assert (await http.get("/health")).status_code == 200
    await app.state.runtime.stop()


@pytest.mark.parametrize(
    ("address", "expected"),
    [("127.0.0.1", True), ("127.9.9.9", True), ("::1", True), ("0.0.0.0", False), ("::", False), ("192.0.2.1", False)],
)
def test_is_loopback_recognizes_addresses_of_this_machine(address: str, expected: bool) -> None:
    assert is_loopback((address, 1)) is expected
