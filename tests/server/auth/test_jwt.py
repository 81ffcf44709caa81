"""TokenVerifier of an issuer on a running server: in headers, on sockets and in the page's cookie."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from limelight.auth import jwt_issuer
from limelight.auth.jwt import TokenRules
from limelight.auth.jwt_issuer import Issuer
from limelight.auth.key_file import Keyring
from limelight.config import load_settings
from limelight.errors import IssuerUnavailable, SetupError, Unauthorized
from limelight.models import LOCAL_OWNER
from limelight.server.app import create_app
from tests.auth.local_issuer import AUDIENCE, KeyPair, LocalIssuer, running_issuer
from tests.server.v2.socket_client import socket
from tests.support import agents
from tests.support.server import asking, offer, serving


@pytest.fixture
async def issuer() -> AsyncIterator[LocalIssuer]:
    async with running_issuer() as issuer:
        yield issuer


class Clock:
    """A clock that goes when it is told to."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


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


async def test_invalid_token_is_refused_with_the_reason(issuer: LocalIssuer, tmp_path: Path) -> None:
    async with serving(agents.echo, data=tmp_path, **issuer.settings) as served:
        problem = await served.problem("GET", "/agents", headers=issuer.headers(lasts=-60))
        assert (problem["code"], problem["detail"]) == ("unauthorized", "this token is not accepted: it has expired")
        local = await served.problem("GET", "/agents", headers=issuer.headers(LOCAL_OWNER))
        assert (local["status"], "server's own" in local["detail"]) == (401, True)
        named = {**issuer.headers("ann"), "x-limelight-user-id": "ben"}
        assert (await served.http.get("/auth/me", headers=named)).json()["user"] == "ann"


async def test_lone_surrogates_in_a_name_are_dropped(issuer: LocalIssuer, tmp_path: Path) -> None:
    async with serving(agents.echo, data=tmp_path, **issuer.settings) as served:
        me = await served.http.get("/auth/me", headers=issuer.headers("ann", name="A\ud800nn \U0001f41d"))
        assert (me.status_code, me.json()["name"]) == (200, "Ann \U0001f41d")


async def test_socket_command_after_the_token_expired_is_refused(
    issuer: LocalIssuer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with serving(agents.echo, data=tmp_path, **issuer.settings) as served:
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


async def test_login_accepts_a_token(issuer: LocalIssuer, tmp_path: Path) -> None:
    async with serving(agents.echo, data=tmp_path, **issuer.settings) as served:
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


def reader(issuer: LocalIssuer, clock: Clock) -> Issuer:
    return Issuer(TokenRules(issuer=issuer.url, audience=AUDIENCE), f"{issuer.url}/keys", clock)


async def test_issuer_key_rotation_is_noticed_after_a_pause(issuer: LocalIssuer) -> None:
    clock = Clock()
    tokens = reader(issuer, clock)
    old = issuer.token("ann")
    assert (await tokens.verify(old)).user_id == "ann"
    issuer.keys = [KeyPair("two")]
    new = issuer.token("ben")
    with pytest.raises(Unauthorized):  # it has asked a moment ago, and does not again for whoever wants it to
        await tokens.verify(new)
    clock.now += jwt_issuer.MIN_INTERVAL_SECONDS
    assert (await tokens.verify(new)).user_id == "ben"
    with pytest.raises(Unauthorized, match="a key that its issuer does not have"):
        await tokens.verify(old)
    assert issuer.key_requests == 2


async def test_tokens_with_unknown_keys_cause_one_request_to_the_issuer(issuer: LocalIssuer) -> None:
    tokens = reader(issuer, Clock())
    for number in range(20):
        with pytest.raises(Unauthorized):
            await tokens.verify(issuer.token(by=KeyPair(f"made up {number % 2}", "EdDSA")))
    assert issuer.key_requests == 1


@pytest.mark.requirement("issuer-unavailable")
async def test_known_keys_are_used_while_the_issuer_is_down(issuer: LocalIssuer) -> None:
    clock = Clock()
    tokens = reader(issuer, clock)
    await tokens.verify(issuer.token())
    issuer.is_down = True
    clock.now += jwt_issuer.REFRESH_SECONDS
    assert (await tokens.verify(issuer.token("ben"))).user_id == "ben"
    assert issuer.key_requests == 2
    await tokens.verify(issuer.token("ben"))
    assert issuer.key_requests == 2  # not with every request


@pytest.mark.parametrize("reply", ["no JSON", "[]", '{"keys": []}', '{"keys": "x"}', '{"keys": [7]}', "{}"])
@pytest.mark.parametrize("what", ["configuration", "keys"])
async def test_malformed_issuer_response_raises_issuer_unavailable(what: str, reply: str, issuer: LocalIssuer) -> None:
    issuer.invalid_answers = {what: reply}
    tokens = Issuer(TokenRules(issuer=issuer.url, audience=AUDIENCE))
    with pytest.raises(IssuerUnavailable):
        await tokens.verify(issuer.token())


async def test_keys_are_not_fetched_without_https(issuer: LocalIssuer, caplog: pytest.LogCaptureFixture) -> None:
    issuer.invalid_answers = {"configuration": '{"jwks_uri": "http://keys.example/"}'}
    with pytest.raises(IssuerUnavailable):
        await Issuer(TokenRules(issuer=issuer.url, audience=AUDIENCE)).verify(issuer.token())
    assert "has to begin with https://" in caplog.text


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
