"""Who may ask: keys, owners, and an open server that answers only its own machine."""

from pathlib import Path

import httpx
import pytest

from limelight.config import load_settings
from limelight.server.app import create_app
from limelight.server.auth.middleware import LOGIN_PATHS, is_loopback
from limelight.server.routes import ENDPOINTS
from tests.support import agents
from tests.support.server import asking, offer, serving

KEY = {"authorization": "Bearer sesame"}


async def test_with_a_key_every_route_but_the_probes_and_the_page_needs_it(tmp_path: Path) -> None:
    async with serving(agents.talker, data=tmp_path, auth__api_key="sesame") as served:
        for method, path in [
            *((e.method, e.path) for e in ENDPOINTS if e.path not in LOGIN_PATHS),
            ("GET", "/docs"),
            ("GET", "/nowhere"),
            ("GET", "/assetsnot"),
        ]:
            for headers in ({}, {"authorization": "Bearer wrong"}, {"authorization": "Basic sesame"}):
                response = await served.http.request(method, path, headers=headers)
                if path in ("/health", "/ready", "/api/v2/health"):
                    assert response.status_code == 200
                else:
                    assert (response.status_code, response.json()["code"]) == (401, "unauthorized"), path
                    assert response.headers["www-authenticate"] == "Bearer"
        assert (await served.http.get("/agents", headers=KEY)).status_code == 200


async def test_a_session_is_its_owners(tmp_path: Path) -> None:
    async with serving(agents.echo, agents.worker, data=tmp_path, auth__api_key="sesame") as served:
        ann = {**KEY, "x-limelight-user-id": "ann", "x-limelight-user-name": "Ann%20%C3%84"}
        ben = {**KEY, "x-limelight-user-id": "ben"}
        told = (await served.http.post("/chat", json=asking("hi", session_id="s"), headers=ann)).json()
        assert told["message"]["content"] == "user:hi for ann/Ann Ä in s"
        work = await served.http.post("/chat", json=asking("go", agent="worker", session_id="w"), headers=ann)
        run_id = work.json()["run_id"]
        paths = [
            ("GET", "/sessions/s"),
            ("PATCH", "/sessions/s"),
            ("DELETE", "/sessions/s"),
            ("GET", "/sessions/s/stream"),
            ("GET", f"/runs/{run_id}"),
            ("GET", f"/runs/{run_id}/stream"),
            ("POST", f"/runs/{run_id}/cancel"),
            ("GET", f"/runs/{run_id}/tools/t1"),
            ("GET", f"/runs/{run_id}/answer"),
        ]
        for method, path in paths:
            assert (await served.problem(method, path, headers=ben))["status"] == 404, path
        assert (await served.http.get("/sessions", headers=ben)).json()["sessions"] == []
        mine = (await served.http.post("/chat", json=asking("me", session_id="s"), headers=ben)).json()
        assert mine["message"]["content"] == "user:me for ben/ in s"
        assert (await served.http.get("/sessions/s", headers=ann)).json()["title"] == "hi"
        named = await served.http.post("/chat", json=asking("x", user_id="cleo"), headers=KEY)
        assert "for cleo/" in named.json()["message"]["content"]


async def test_a_user_id_is_never_cut(tmp_path: Path) -> None:
    async with serving(agents.echo, data=tmp_path, auth__api_key="sesame") as served:
        headers = {**KEY, "x-limelight-user-id": "a" * 257}
        assert (await served.problem("GET", "/sessions", headers=headers))["status"] == 400
        problem = await served.problem("POST", "/chat", json=asking("x", user_id="a" * 257), headers=KEY)
        assert (problem["status"], problem["errors"][0]["path"]) == (422, "user_id")


async def test_without_a_key_nobody_can_claim_to_be_somebody(tmp_path: Path) -> None:
    async with serving(agents.echo, data=tmp_path) as served:
        headers = {"x-limelight-user-id": "ann"}
        told = (await served.http.post("/chat", json=asking("hi", user_id="ann"), headers=headers)).json()
        assert " for local/ in " in told["message"]["content"]


async def test_an_open_server_does_not_answer_to_other_names(tmp_path: Path) -> None:
    async with serving(agents.echo, data=tmp_path) as served:
        for host in ("evil.example", "evil.example:8000", "10.0.0.1", "localhost.evil.example"):
            problem = await served.problem("GET", "/agents", headers={"host": host})
            assert (problem["status"], problem["code"]) == (403, "forbidden")
        for host in ("localhost:8000", "127.0.0.1", "[::1]:9", "app.localhost"):
            assert (await served.http.get("/agents", headers={"host": host})).status_code == 200


async def test_an_open_server_does_not_answer_other_machines(tmp_path: Path) -> None:
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
def test_loopback(address: str, expected: bool) -> None:
    assert is_loopback((address, 1)) is expected
