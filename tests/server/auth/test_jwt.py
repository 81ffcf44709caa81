"""Tokens of an issuer on a running server: in headers, on sockets and in the page's cookie."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from limelight.auth.key_file import Keyring
from limelight.config import load_settings
from limelight.errors import SetupError
from limelight.models import LOCAL_OWNER
from limelight.server.app import create_app
from tests.auth.local_issuer import LocalIssuer, running_issuer
from tests.server.v2.socket_client import socket
from tests.support import agents
from tests.support.server import Served, asking, offer, serving


@pytest.fixture
async def issuer() -> AsyncIterator[LocalIssuer]:
    async with running_issuer() as issuer:
        yield issuer


@pytest.fixture
async def served(issuer: LocalIssuer, tmp_path: Path) -> AsyncIterator[Served]:
    """A server that accepts tokens of the issuer."""
    async with serving(agents.echo, data=tmp_path, **issuer.settings) as served:
        yield served


async def test_token_authenticates_its_user_with_its_scopes(issuer: LocalIssuer, tmp_path: Path) -> None:
    async with serving(agents.echo, data=tmp_path, **issuer.settings) as served:
        assert (await served.http.get("/agents")).status_code == 401
        ann, ben = issuer.headers("ann", name="Ann"), issuer.headers("ben")
        await served.http.post("/chat", json=asking("hi", session_id="s"), headers=ann)
        assert (await served.http.get("/sessions/s", headers=ann)).status_code == 200
        assert (await served.http.get("/sessions/s", headers=ben)).status_code == 404
        me = (await served.http.get("/auth/me", headers=ann)).json()
        assert me == {"user": "ann", "name": "Ann", "scopes": ["use"], "open": False}
        assert (await served.http.get("/admin/users", headers=ann)).status_code == 403
        admin = issuer.headers("root", scope="limelight:admin")
        assert (await served.http.get("/admin/users", headers=admin)).status_code == 200
        key = Keyring(tmp_path).create("ann", ("use",), 1)[1]  # the same user by another way
        assert (await served.http.get("/sessions/s", headers={"authorization": f"Bearer {key}"})).status_code == 200
        assert issuer.key_requests == 1


async def test_invalid_token_is_refused_with_the_reason(issuer: LocalIssuer, served: Served) -> None:
    problem = await served.problem("GET", "/agents", headers=issuer.headers(lasts=-60))
    assert (problem["code"], problem["detail"]) == ("unauthorized", "this token is not accepted: it has expired")
    local = await served.problem("GET", "/agents", headers=issuer.headers(LOCAL_OWNER))
    assert (local["status"], "server's own" in local["detail"]) == (401, True)
    named = {**issuer.headers("ann"), "x-limelight-user-id": "ben"}
    assert (await served.http.get("/auth/me", headers=named)).json()["user"] == "ann"


async def test_lone_surrogates_in_a_name_are_dropped(issuer: LocalIssuer, served: Served) -> None:
    me = await served.http.get("/auth/me", headers=issuer.headers("ann", name="A\ud800nn \U0001f41d"))
    assert (me.status_code, me.json()["name"]) == (200, "Ann \U0001f41d")


async def test_socket_command_after_the_token_expired_is_refused(
    issuer: LocalIssuer, served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    headers = issuer.headers("ann")
    async with socket(served, headers=headers, agent_type="echo") as ws:
        await ws.send("ping")
        await ws.until_type("pong")
        monkeypatch.setattr("limelight.auth.jwt.LEEWAY_SECONDS", -3600)  # an hour later
        await ws.send("ping")
        assert (await ws.error())[1] == "unauthorized"


async def test_idle_stream_and_socket_end_when_their_token_expires(
    issuer: LocalIssuer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with serving(agents.patient, data=tmp_path, server__heartbeat_seconds=0.1, **issuer.settings) as served:
        headers = issuer.headers("ann")
        async with socket(served, headers=headers, agent_type="patient") as ws:
            await ws.send("query", query="go")
            await ws.until_state("processing")
            async with served.http.stream("GET", "/sessions/s/stream", headers=headers) as stream:
                lines = stream.aiter_lines()
                await anext(lines)
                monkeypatch.setattr("limelight.auth.jwt.LEEWAY_SECONDS", -3600)  # an hour later
                async with asyncio.timeout(20):
                    assert (await ws.error())[1] == "unauthorized"
                    async for _ in lines:
                        pass
        assert served.runtime.sessions.count == 1


async def test_login_accepts_a_token(issuer: LocalIssuer, served: Served) -> None:
    assert (await served.http.post("/auth/login", json={"key": issuer.token("ann")})).status_code == 204
    assert (await served.http.get("/auth/me")).json()["user"] == "ann"
    refused = await served.problem("POST", "/auth/login", json={"key": issuer.token("ann", lasts=-60)})
    assert (refused["code"], "expired" in refused["detail"]) == ("unauthorized", True)


@pytest.mark.requirement("issuer-unavailable")
async def test_unreachable_issuer_refuses_tokens_but_not_keys(issuer: LocalIssuer, tmp_path: Path) -> None:
    issuer.is_down = True
    async with serving(agents.echo, data=tmp_path, **issuer.settings, auth__api_key="secret") as served:
        problem = await served.problem("GET", "/agents", headers=issuer.headers())
        assert (problem["status"], problem["code"]) == (503, "issuer_unavailable")
        assert (await served.http.get("/agents", headers={"authorization": "Bearer secret"})).status_code == 200
        assert (await served.http.get("/health")).status_code == 200


@pytest.mark.parametrize(
    ("auth", "why"),
    [
        ({"audience": "x"}, "auth.audience is for tokens, which need auth.issuer too"),
        ({"jwks_url": "https://a.example"}, "auth.jwks_url is for tokens, which need auth.issuer too"),
        ({"issuer": "https://a.example"}, "auth.issuer needs auth.audience too"),
        ({"issuer": "http://a.example", "audience": "x"}, "has to begin with https://"),
        ({"issuer": "https://a.example", "audience": "x", "jwks_url": "ftp://a.example"}, "has to begin with https://"),
        ({"issuer": "https://a.example", "audience": "x", "user_claim": ""}, "auth.user_claim is empty"),
    ],
)
def test_invalid_token_settings_are_refused_at_the_start(auth: dict[str, str], why: str, tmp_path: Path) -> None:
    overrides: Any = {("store", "data"): str(tmp_path), **{("auth", name): value for name, value in auth.items()}}
    with pytest.raises(SetupError) as refused:
        create_app(load_settings(environ={}, overrides=overrides), [offer(agents.echo)])
    assert why in refused.value.detail
