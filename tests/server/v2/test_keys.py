"""Keys and owners on a socket: every command is checked, as every route is."""

import json
from pathlib import Path
from typing import Any

import pytest

from limelight.server.v2.commands import COMMAND_TYPES
from tests.server.keyed_server import KeyedServer, bearer, serving_keys, start_waiting_run
from tests.server.v2.socket_client import socket
from tests.support import agents
from tests.support.wait import eventually


@pytest.mark.requirement("revocation")
async def test_revoked_key_closes_an_idle_socket(tmp_path: Path) -> None:
    async with serving_keys(tmp_path, agents.patient, server__heartbeat_seconds=0.1) as keyed:
        served, lost, kept = keyed.served, keyed.key("ann"), keyed.headers("ann")
        async with (
            socket(served, "s", headers=bearer(lost), agent_type="patient") as ws,
            socket(served, "s", headers=kept) as other,
        ):
            await ws.receive()
            keyed.keyring.revoke(lost.split("_")[1], 2)
            assert (await ws.error())[1] == "unauthorized"
            assert await ws.closed() == (1008, "unauthorized")
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
    assert MESSAGES.keys() == COMMAND_TYPES.keys()


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
        assert await ws.closed() == (1008, "unauthorized")


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
