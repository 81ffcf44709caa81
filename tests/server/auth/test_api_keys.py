"""API keys on a running server: every route and socket without a key, with a wrong, revoked or another user's key, and
without the scope."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest

from limelight.auth.key_file import Keyring
from limelight.config import load_settings
from limelight.errors import SetupError
from limelight.messages import Message
from limelight.server.app import create_app
from limelight.server.auth.authenticator import Authenticator
from limelight.server.auth.middleware import PROBE_PATHS
from limelight.server.endpoint import Endpoint
from limelight.sources.base import Context
from tests.server.keyed_server import (
    Headers,
    KeyedServer,
    bearer,
    fill_names,
    fill_path,
    guarded_endpoints,
    handshake,
    serving_keys,
    start_waiting_run,
)
from tests.support import agents
from tests.support.server import Served, asking, offer, serving
from tests.support.wait import eventually


@pytest.mark.parametrize("kind", ["none", "wrong", "basic", "revoked", "empty"])
async def test_request_without_a_valid_key_is_unauthorized(keyed: KeyedServer, kind: str) -> None:
    revoked = keyed.key("ann")
    keyed.keyring.revoke(revoked.split("_")[1], 2)
    headers = {
        "none": {},
        "wrong": bearer("_".join([keyed.key("ann").rpartition("_")[0], keyed.key("ben").rpartition("_")[2]])),
        "basic": {"authorization": f"Basic {keyed.key('ben')}"},
        "revoked": bearer(revoked),
        "empty": {"authorization": "Bearer"},
    }[kind]
    for endpoint in guarded_endpoints():
        response = await keyed.served.http.request(endpoint.method, fill_path(endpoint.path), headers=headers)
        assert (response.status_code, response.json()["code"]) == (401, "unauthorized"), endpoint.path
        assert response.headers["www-authenticate"] == "Bearer"
    assert await handshake(keyed.served, headers) == 401


@pytest.mark.requirement("key-required")
async def test_first_key_closes_an_open_server_at_once(keyed: KeyedServer) -> None:
    assert (await keyed.served.http.get("/agents")).status_code == 200
    headers = keyed.headers("ann")
    assert (await keyed.served.http.get("/agents")).status_code == 401
    assert (await keyed.served.http.get("/agents", headers=headers)).status_code == 200
    for probe in PROBE_PATHS:
        assert (await keyed.served.http.get(probe)).status_code == 200


@pytest.mark.requirement("revocation")
@pytest.mark.parametrize("path", ["/sessions/s/stream", "/runs/{run_id}/stream", "/chat/stream"])
async def test_revoked_key_ends_its_streams(tmp_path: Path, path: str) -> None:
    """Idle streams and busy streams end; a stream with another key of the same user continues."""
    async with serving_keys(tmp_path, agents.patient, talkative, server__heartbeat_seconds=0.1) as keyed:
        served, lost, kept = keyed.served, keyed.key("ann"), keyed.headers("ann")
        agent = "talkative" if path.startswith("/runs") else "patient"
        asked = served.stream("POST", "/chat/stream", json=asking("go", session_id="s", agent=agent), headers=kept)
        await anext(asked)
        run_id = (await served.http.get("/sessions/s", headers=kept)).json()["run_id"]
        body: dict[str, Any] = {}
        if path == "/chat/stream":  # a stream of a queued run
            body = {"json": asking("and then?", session_id="s", agent="patient", if_busy="wait")}
        method, path = "POST" if body else "GET", path.format(run_id=run_id)
        async with served.http.stream(method, path, headers=bearer(lost), **body) as response:
            lines = response.aiter_lines()
            await anext(lines)
            keyed.keyring.revoke(lost.split("_")[1], 2)
            async with asyncio.timeout(20):
                async for _ in lines:
                    pass
        refused = await served.problem(method, path, headers=bearer(lost), **body)
        assert refused["code"] == "unauthorized"
        if agent == "talkative":
            assert await asyncio.wait_for(anext(asked), 20)
        assert served.runtime.sessions.count == 1


async def talkative(messages: list[Message], ctx: Context) -> AsyncIterator[str]:
    """Emits text every millisecond."""
    while True:
        yield "word "
        await asyncio.sleep(0.001)


async def test_complete_answer_is_refused_if_its_key_was_revoked(keyed: KeyedServer) -> None:
    key, kept = keyed.key("ann"), keyed.headers("ann")
    body = asking("go", session_id="s", agent="maker")
    asked = asyncio.create_task(keyed.served.http.post("/chat", json=body, headers=bearer(key)))
    await eventually(lambda: keyed.served.runtime.sessions.count == 1)
    keyed.keyring.revoke(key.split("_")[1], 2)
    run_id = (await keyed.served.http.get("/sessions/s", headers=kept)).json()["run_id"]
    await keyed.served.http.post(f"/runs/{run_id}/cancel", headers=kept)
    reply = await asked
    assert (reply.status_code, reply.json()["code"]) == (401, "unauthorized")


@pytest.mark.requirement("user-system")
@pytest.mark.parametrize("how", ["key", "header", "body"])
async def test_user_named_system_is_refused(keyed: KeyedServer, how: str) -> None:
    """In the log, `system` means that no user has decided."""
    pipe = keyed.headers("pipe", "use", "on-behalf-of")
    if how == "key":  # made before the name was refused
        status, headers, body = 401, keyed.headers("system"), asking("hi")
    elif how == "header":
        status, headers, body = 400, {**pipe, "x-limelight-user-id": "system"}, asking("hi")
    else:
        status, headers, body = 422, pipe, asking("hi", user_id="system")
    problem = await keyed.served.problem("POST", "/chat", json=body, headers=headers)
    assert (problem["status"], "the server itself" in str(problem)) == (status, True)


async def ended(served: Served, run_id: str, headers: Headers) -> None:
    """Wait for the end of a run."""
    async with served.http.stream("GET", f"/runs/{run_id}/stream", headers=headers) as response:
        await response.aread()


@pytest.mark.requirement("owner-only")
async def test_objects_of_another_user_are_not_found(keyed: KeyedServer) -> None:
    ann, ben = keyed.headers("ann"), keyed.headers("ben")
    names = await start_waiting_run(keyed.served, ann)
    routes = [endpoint for endpoint in guarded_endpoints() if "{" in endpoint.path and endpoint.scope != "admin"]

    async def answered(endpoint: Endpoint, headers: Headers) -> int:
        body = {"title": "mine"} if endpoint.method == "PATCH" else {"decision": "approve"}
        options: dict[str, Any] = {"json": body} if endpoint.body is not None else {}
        path = fill_names(endpoint.path, names)
        if endpoint.response == "text/event-stream":
            options["params"] = {"after": "1"}
        async with keyed.served.http.stream(endpoint.method, path, headers=headers, **options) as response:
            return response.status_code

    for endpoint in routes:
        assert await answered(endpoint, ben) == 404, (endpoint.method, endpoint.path)
    # The owner gets all of them; routes that stop or delete come last.
    for endpoint in sorted(routes, key=lambda one: (one.method == "DELETE", one.path.endswith("/cancel"))):
        if endpoint.path.endswith("/answer"):  # the run continues a moment after its approval was decided
            await ended(keyed.served, names["run_id"], ann)
        if (
            endpoint.path != "/api/v2/sessions/{session_id}" or endpoint.method != "DELETE"
        ):  # the other DELETE was first
            assert await answered(endpoint, ann) in (200, 204), (endpoint.method, endpoint.path)


@pytest.mark.parametrize(
    "user_id", ["%ff", "%00", "a%0Ab", "x" * 257, "ann%20", "%20ann", "ann%C2%A0", "%09ann", "%20"]
)
async def test_malformed_user_id_header_is_refused(keyed: KeyedServer, user_id: str) -> None:
    headers = keyed.headers("pipe", "use", "on-behalf-of")
    problem = await keyed.served.problem("GET", "/auth/me", headers={**headers, "x-limelight-user-id": user_id})
    assert (problem["status"], problem["errors"][0]["path"]) == (400, "X-Limelight-User-Id")


@pytest.mark.parametrize("user_id", ["local", "%6cocal"])
async def test_only_the_key_of_the_settings_may_name_the_local_user(tmp_path: Path, user_id: str) -> None:
    """The user `local` has no limits."""
    async with serving(agents.echo, data=tmp_path, auth__api_key="sesame") as served:
        pipe = bearer(Keyring(tmp_path).create("pipe", ("use", "on-behalf-of"), 1)[1])
        named, body = {"x-limelight-user-id": user_id}, asking("hi", user_id=unquote(user_id))
        problem = await served.problem("GET", "/auth/me", headers={**pipe, **named})
        assert (problem["status"], problem["errors"][0]["path"]) == (400, "X-Limelight-User-Id")
        problem = await served.problem("POST", "/chat", json=body, headers=pipe)
        assert (problem["status"], problem["errors"][0]["path"]) == (400, "user_id")
        assert await handshake(served, {**pipe, **named}) == 400
        own = bearer("sesame")
        assert (await served.http.get("/auth/me", headers={**own, **named})).json()["user"] == "local"
        assert (await served.http.post("/chat", json=body, headers=own)).status_code == 200


async def test_empty_user_id_header_is_ignored(keyed: KeyedServer) -> None:
    headers = {**keyed.headers("pipe", "use", "on-behalf-of"), "x-limelight-user-id": ""}
    reply = await keyed.served.http.post("/chat", json=asking("hi", user_id="cleo"), headers=headers)
    assert " for cleo/ in " in reply.json()["message"]["content"]


@pytest.mark.parametrize("user_id", [" cleo ", "cleo ", " ", "\u00a0cleo", "local "])
async def test_user_id_in_the_body_with_spaces_around_it_is_refused(keyed: KeyedServer, user_id: str) -> None:
    headers = keyed.headers("pipe", "use", "on-behalf-of")
    problem = await keyed.served.problem("POST", "/chat", json=asking("hi", user_id=user_id), headers=headers)
    assert (problem["status"], problem["errors"][0]["path"]) == (422, "user_id")


@pytest.mark.requirement("owner-only")
async def test_user_ids_are_decoded_once_and_compared_exactly(keyed: KeyedServer) -> None:
    """The user `ann%20` (encoded twice) is another one than `ann` and than `Ann`; spaces inside are allowed."""
    pipe = keyed.headers("pipe", "use", "on-behalf-of")
    for sent, user in (
        ("ann", "ann"),
        ("Ann", "Ann"),
        ("ann%2520", "ann%20"),
        ("ann%20bee", "ann bee"),
    ):
        headers = {**pipe, "x-limelight-user-id": sent}
        assert (await keyed.served.http.get("/auth/me", headers=headers)).json()["user"] == user


@pytest.mark.requirement("scopes")
async def test_key_without_the_scope_of_a_route_is_forbidden(keyed: KeyedServer) -> None:
    headers = {"use": keyed.headers("ann", "admin"), "admin": keyed.headers("ann", "use")}
    for endpoint in guarded_endpoints():
        if endpoint.scope is None:
            continue
        path, lacking = fill_path(endpoint.path), headers[endpoint.scope]
        response = await keyed.served.http.request(endpoint.method, path, headers=lacking)
        assert (response.status_code, response.json()["code"]) == (403, "forbidden"), endpoint.path
        assert f"{endpoint.scope!r}" in response.json()["detail"]
    assert await handshake(keyed.served, headers["use"]) == 403
    assert [endpoint.path for endpoint in guarded_endpoints() if endpoint.scope is None] == ["/auth/me"]


@pytest.mark.requirement("scopes")
async def test_only_an_on_behalf_of_key_may_name_users(keyed: KeyedServer) -> None:
    named = {"x-limelight-user-id": "cleo", "x-limelight-user-name": "Cleo"}

    async def user_of(headers: Headers, **body: str) -> str:
        reply = await keyed.served.http.post("/chat", json=asking("hi", **body), headers=headers)
        return reply.json()["message"]["content"].partition(" for ")[2].partition(" in ")[0]

    plain, pipe = keyed.headers("ann"), keyed.headers("pipe", "use", "on-behalf-of")
    assert await user_of({**plain, **named}) == "ann/"
    assert await user_of(plain, user_id="cleo") == "ann/"
    assert await user_of({**pipe, **named}) == "cleo/Cleo"
    assert await user_of(pipe, user_id="dora") == "dora/"
    assert await user_of(pipe) == "pipe/"


async def test_key_of_the_settings_has_all_scopes(tmp_path: Path) -> None:
    async with serving(agents.echo, data=tmp_path, auth__api_key="sesame") as served:
        me = (await served.http.get("/auth/me", headers=bearer("sesame"))).json()
        assert me == {"user": "local", "name": "", "scopes": ["admin", "on-behalf-of", "use"], "open": False}
        other = Keyring(tmp_path).create("ann", ("use",), 1)[1]
        assert (await served.http.get("/auth/me", headers=bearer(other))).json()["user"] == "ann"


@pytest.mark.requirement("key-file-fails-closed")
@pytest.mark.parametrize("broken", ["[{", "[]", None])
@pytest.mark.parametrize("api_key", ["", "sesame"])
async def test_unreadable_key_file_refuses_keys_and_is_logged_once(
    tmp_path: Path, api_key: str, broken: str | None, caplog: pytest.LogCaptureFixture
) -> None:
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
        assert caplog.text.count("keys.json") == 1  # once, and not with each request
        if api_key:
            assert (await served.http.get("/agents", headers=bearer(api_key))).status_code == 200


@pytest.mark.parametrize("api_key", ["schlüssel", "two words", "a\nb"])
def test_api_key_that_does_not_fit_a_header_is_refused_at_the_start(tmp_path: Path, api_key: str) -> None:
    with pytest.raises(SetupError, match="LIMELIGHT_API_KEY"):
        Authenticator(api_key, Keyring(tmp_path))


@pytest.mark.parametrize("origin", ["*", "https://a.example/", "a.example", "https://a.example/x"])
def test_invalid_origin_is_refused_at_the_start(tmp_path: Path, origin: str) -> None:
    overrides: Any = {("store", "data"): str(tmp_path), ("server", "origins"): [origin]}
    with pytest.raises(SetupError, match=r"server\.origins"):
        create_app(load_settings(environ={}, overrides=overrides), [offer(agents.echo)])


@pytest.mark.requirement("admin-cannot-read")
async def test_admin_lists_and_deletes_sessions_but_cannot_read_them(keyed: KeyedServer) -> None:
    ann, admin = keyed.headers("ann"), keyed.headers("root", "admin")
    for session_id in ("one", "two"):
        await keyed.served.http.post("/chat", json=asking("hi", session_id=session_id), headers=ann)
    users = (await keyed.served.http.get("/admin/users", headers=admin)).json()
    assert [(user["user"], user["sessions"]) for user in users["users"]] == [("ann", 2)]
    listed = (await keyed.served.http.get("/admin/sessions", params={"user": "ann"}, headers=admin)).json()
    assert [session["session_id"] for session in listed["sessions"]] == ["two", "one"]
    assert (await keyed.served.http.get("/sessions/one", headers=admin)).status_code == 403
    gone = await keyed.served.http.delete("/admin/sessions/one", params={"user": "ann"}, headers=admin)
    assert gone.status_code == 204
    assert (await keyed.served.http.get("/sessions/one", headers=ann)).status_code == 404
    again = await keyed.served.problem("DELETE", "/admin/sessions/one", params={"user": "ann"}, headers=admin)
    assert again["code"] == "session_not_found"
    unnamed = await keyed.served.problem("GET", "/admin/sessions", headers=admin)
    assert (unnamed["status"], unnamed["errors"][0]["path"]) == (400, "user")


async def test_users_are_listed_in_pages(keyed: KeyedServer) -> None:
    for name in ("ann", "ben", "cleo"):
        await keyed.served.http.post("/chat", json=asking("hi", session_id="s"), headers=keyed.headers(name))
    seen: list[str] = []
    after: str | None = ""
    while after is not None:
        params = {"limit": "2", "after": after}
        page = (await keyed.served.http.get("/admin/users", params=params, headers=keyed.headers("r", "admin"))).json()
        seen += [user["user"] for user in page["users"]]
        after = page["next"]
    assert seen == ["ann", "ben", "cleo"]
