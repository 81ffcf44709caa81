"""Keys on a socket: with every message, as with every route."""

import json
from pathlib import Path
from typing import Any

import pytest
from websockets.exceptions import ConnectionClosed

from limelight.auth.key_file import NAME as KEYS_FILE
from limelight.auth.key_file import Keyring
from limelight.server.v2.commands import COMMANDS
from tests.server.keyed_server import House, bearer, everything
from tests.server.v2.socket_client import socket
from tests.support import agents
from tests.support.server import serving
from tests.support.wait import eventually


async def test_a_key_that_is_revoked_ends_its_sockets_with_their_next_word(house: House) -> None:
    key = house.key("ann")
    async with socket(house.served, "s", headers=bearer(key)) as watching:
        await watching.hear()
        house.keyring.revoke(key.split("_")[1], 2)
        await watching.say("query", query="still here?")
        assert (await watching.error())[1] == "unauthorized"
    assert (await house.served.http.get("/sessions/s", headers=house.headers("ann"))).json()["turns"] == 0


async def test_a_key_that_is_revoked_ends_a_socket_that_only_listens(tmp_path: Path) -> None:
    async with serving(agents.patient, data=tmp_path, server__heartbeat_seconds=0.1) as served:
        house = House(served, Keyring(tmp_path), tmp_path / KEYS_FILE)
        lost, kept = house.key("ann"), house.headers("ann")
        async with (
            socket(served, "s", headers=bearer(lost), agent_type="patient") as watching,
            socket(served, "s", headers=kept) as other,
        ):
            await watching.hear()
            house.keyring.revoke(lost.split("_")[1], 2)
            assert (await watching.error())[1] == "unauthorized"
            with pytest.raises(ConnectionClosed) as closed:
                await watching.hear()
            assert closed.value.rcvd is not None
            assert (closed.value.rcvd.code, closed.value.rcvd.reason) == (1008, "unauthorized")
            await other.say("query", query="go on")
            await other.until_state("processing")
        await eventually(lambda: served.runtime.hub.viewers_of("ann") == 0)


async def test_a_socket_of_an_open_server_ends_with_the_first_key(house: House) -> None:
    async with socket(house.served, "s") as watching:
        await watching.hear()
        house.key("ann")
        await watching.say("query", query="still here?")
        assert (await watching.error())[1] == "unauthorized"


MESSAGES: dict[str, dict[str, Any]] = {
    "query": {"query": "hello"},
    "ping": {},
    "get_messages": {},
    "get_state": {},
    "cancel": {},
    "approve": {"approval_id": "apr_1"},
    "resume": {"after": 0},
}
"""Each message that a client may say, with the least that it needs."""


def test_every_message_is_tried() -> None:
    assert MESSAGES.keys() == COMMANDS.keys()


@pytest.mark.parametrize("kind", MESSAGES)
@pytest.mark.parametrize("lost", ["revoked", "narrowed"])
async def test_no_message_is_answered_once_the_key_is_gone(house: House, kind: str, lost: str) -> None:
    key = house.key("ann")
    async with socket(house.served, "s", headers=bearer(key), agent_type="echo") as watching:
        await watching.hear()
        if lost == "revoked":
            house.keyring.revoke(key.split("_")[1], 2)
        else:
            narrow(house, key)
        await watching.say(kind, **MESSAGES[kind])
        frame = await watching.hear()
        assert (frame["type"], frame["error_code"]) == ("error", "unauthorized")
        with pytest.raises(ConnectionClosed):
            await watching.hear()


def narrow(house: House, key: str) -> None:
    """Take away what the key allows, as whoever edits the file can."""
    written = json.loads(house.keyring_file.read_text())
    for kept in written:
        kept["scopes"] = ["admin"] if kept["key_id"] == key.split("_")[1] else kept["scopes"]
    house.keyring_file.write_text(json.dumps(written))


@pytest.mark.parametrize("kind", MESSAGES)
async def test_no_message_reaches_what_is_anothers(house: House, kind: str) -> None:
    """The same session id is another session of another user; ids of runs and questions lead nowhere."""
    ann, ben = house.headers("ann"), house.headers("ben")
    names = await everything(house.served, ann)
    path = f"/runs/{names['run_id']}"
    before = (await house.served.http.get(path, headers=ann)).json()
    async with socket(house.served, names["session_id"], headers=ben, agent_type="echo") as watching:
        first = await watching.hear()
        fields = MESSAGES[kind] | ({"approval_id": names["approval_id"]} if kind == "approve" else {})
        await watching.say(kind, **fields)
        await watching.say("ping")
        said = [first, *await watching.until_type("pong")]
        if kind == "query":
            said += await watching.until_state("completed")
    told = json.dumps(said)
    assert not [value for name, value in names.items() if name in ("run_id", "artifact_id") and value in told]
    assert "made" not in told and "note.txt" not in told
    assert (await house.served.http.get(path, headers=ann)).json() == before
    if kind in ("cancel", "approve"):
        assert [frame["error_code"] for frame in said if frame["type"] == "error"] == ["not_processing"]
