"""Keys and owners on a socket: every command is checked, as every route is."""

import json
from pathlib import Path
from typing import Any

import pytest
from websockets.exceptions import ConnectionClosed

from limelight.auth.key_file import NAME as KEYS_FILE
from limelight.auth.key_file import Keyring
from limelight.server.v2.commands import COMMANDS
from tests.server.keyed_server import KeyedServer, bearer, start_waiting_run
from tests.server.v2.socket_client import socket, whole
from tests.support import agents
from tests.support.server import serving
from tests.support.wait import eventually


async def test_command_with_a_revoked_key_is_refused_and_starts_no_run(keyed: KeyedServer) -> None:
    key = keyed.key("ann")
    async with socket(keyed.served, "s", headers=bearer(key)) as ws:
        await ws.receive()
        keyed.keyring.revoke(key.split("_")[1], 2)
        await ws.send("query", query="still here?")
        assert (await ws.error())[1] == "unauthorized"
    assert (await keyed.served.http.get("/sessions/s", headers=keyed.headers("ann"))).json()["turns"] == 0


@pytest.mark.requirement("revocation")
async def test_revoked_key_closes_an_idle_socket(tmp_path: Path) -> None:
    async with serving(agents.patient, data=tmp_path, server__heartbeat_seconds=0.1) as served:
        keyed = KeyedServer(served, Keyring(tmp_path), tmp_path / KEYS_FILE)
        lost, kept = keyed.key("ann"), keyed.headers("ann")
        async with (
            socket(served, "s", headers=bearer(lost), agent_type="patient") as ws,
            socket(served, "s", headers=kept) as other,
        ):
            await ws.receive()
            keyed.keyring.revoke(lost.split("_")[1], 2)
            assert (await ws.error())[1] == "unauthorized"
            with pytest.raises(ConnectionClosed) as closed:
                await ws.receive()
            assert closed.value.rcvd is not None
            assert (closed.value.rcvd.code, closed.value.rcvd.reason) == (1008, "unauthorized")
            await other.send("query", query="go on")
            await other.until_state("processing")
        await eventually(lambda: served.runtime.hub.viewers_of("ann") == 0)


async def test_first_key_closes_sockets_of_an_open_server(keyed: KeyedServer) -> None:
    async with socket(keyed.served, "s") as ws:
        await ws.receive()
        keyed.key("ann")
        await ws.send("query", query="still here?")
        assert (await ws.error())[1] == "unauthorized"


MESSAGES: dict[str, dict[str, Any]] = {
    "query": {"query": "hello"},
    "ping": {},
    "get_messages": {},
    "get_state": {},
    "cancel": {},
    "approve": {"approval_id": "apr_1"},
    "resume": {"after": 0},
}
"""Each command with its required fields."""


def test_all_commands_have_a_case() -> None:
    assert MESSAGES.keys() == COMMANDS.keys()


@pytest.mark.parametrize("kind", MESSAGES)
@pytest.mark.parametrize("lost", ["revoked", "narrowed"])
async def test_every_command_is_refused_after_the_key_lost_its_scope(keyed: KeyedServer, kind: str, lost: str) -> None:
    key = keyed.key("ann")
    async with socket(keyed.served, "s", headers=bearer(key), agent_type="echo") as ws:
        await ws.receive()
        if lost == "revoked":
            keyed.keyring.revoke(key.split("_")[1], 2)
        else:
            narrow(keyed, key)
        await ws.send(kind, **MESSAGES[kind])
        frame = await ws.receive()
        assert (frame["type"], frame["error_code"]) == ("error", "unauthorized")
        with pytest.raises(ConnectionClosed):
            await ws.receive()


def narrow(keyed: KeyedServer, key: str) -> None:
    """Remove the scopes of the key from the file."""
    written = json.loads(keyed.keyring_file.read_text())
    for kept in written:
        kept["scopes"] = ["admin"] if kept["key_id"] == key.split("_")[1] else kept["scopes"]
    keyed.keyring_file.write_text(json.dumps(written))


@pytest.mark.parametrize("kind", MESSAGES)
async def test_no_command_reaches_objects_of_another_user(keyed: KeyedServer, kind: str) -> None:
    """The same session id names another session for another user; ids of runs and approvals are not found."""
    ann, ben = keyed.headers("ann"), keyed.headers("ben")
    names = await start_waiting_run(keyed.served, ann)
    path = f"/runs/{names['run_id']}"
    before = (await keyed.served.http.get(path, headers=ann)).json()
    async with socket(keyed.served, names["session_id"], headers=ben, agent_type="echo") as ws:
        first = await ws.receive()
        fields = MESSAGES[kind] | ({"approval_id": names["approval_id"]} if kind == "approve" else {})
        await ws.send(kind, **fields)
        await ws.send("ping")
        frames = [first, *await ws.until_type("pong")]
        if kind == "query":
            frames += await ws.until_state("completed")
    output = json.dumps(frames)
    assert not [value for name, value in names.items() if name in ("run_id", "artifact_id") and value in output]
    assert "made" not in output and "note.txt" not in output
    assert (await keyed.served.http.get(path, headers=ann)).json() == before
    if kind in ("cancel", "approve"):
        assert [frame["error_code"] for frame in frames if frame["type"] == "error"] == ["not_processing"]


async def test_session_of_another_user_is_not_visible(tmp_path: Path) -> None:
    key = bearer("sesame")
    async with serving(agents.echo, data=tmp_path, auth__api_key="sesame") as served:
        ann, ben = ({**key, "x-limelight-user-id": name} for name in ("ann", "ben"))
        async with socket(served, headers=ann) as ws:
            frames = await ws.ask("secret")
            assert "for ann/" in whole(frames)[-1]["content"]
        async with socket(served, headers=ben) as ws:  # the same id, another session
            assert (await ws.receive())["state"]["message_count"] == 0
            await ws.send("get_messages")
            assert (await ws.receive())["count"] == 0
        assert (await served.http.get("/api/v2/sessions/s", headers=key)).status_code == 404
        assert (await served.http.get("/api/v2/sessions/s/messages", headers=key)).status_code == 404
        assert (await served.http.delete("/api/v2/sessions/s", headers=key)).status_code == 404
        assert (await served.http.get("/api/v2/sessions", headers=key)).json() == []
