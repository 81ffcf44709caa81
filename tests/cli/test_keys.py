"""`limelight keys` as a shell sees it."""

import json
from pathlib import Path

import httpx
import pytest

from tests.cli.test_commands import limelight
from tests.system.processes.server_process import AGENTS_FILE, ServerProcess


def create(folder: Path, *arguments: str) -> str:
    """The key that is made: the last word on standard output, and the only one."""
    said = limelight("keys", "create", *arguments, folder=folder).stdout.decode()
    assert said.count("\n") == 1
    return said.split()[-1]


def test_a_key_is_made_used_and_revoked_beside_a_server(tmp_path: Path) -> None:
    with ServerProcess(tmp_path / "data", "hello") as server:
        url = f"http://127.0.0.1:{server.port}"
        data = ("--data", str(tmp_path / "data"))
        assert httpx.get(f"{url}/agents").status_code == 200
        key = create(tmp_path, "--user", "ann", *data)
        assert httpx.get(f"{url}/agents").status_code == 401
        told = limelight("run", "hi", "--url", url, folder=tmp_path, LIMELIGHT_API_KEY=key).stdout.decode()
        assert "hello" in told
        refused = limelight("sessions", "--url", url, folder=tmp_path, code=2).stderr.decode()
        assert refused.startswith("limelight: ") and "key" in refused
        listed = limelight("keys", "list", *data, folder=tmp_path).stdout.decode().splitlines()
        assert listed[1].split()[:3] == [key.split("_")[1], "ann", "use"]
        assert key not in "".join(listed)
        limelight("keys", "revoke", key, *data, folder=tmp_path)
        assert httpx.get(f"{url}/agents", headers={"authorization": f"Bearer {key}"}).status_code == 401
        assert key.rpartition("_")[2] not in server.log


def test_a_user_whom_the_key_may_not_speak_for_is_told(tmp_path: Path) -> None:
    with ServerProcess(tmp_path / "data", "hello") as server:
        asked = ("sessions", "--url", f"http://127.0.0.1:{server.port}", "--user", "cleo")
        open_ = limelight(*asked, folder=tmp_path, code=2).stderr.decode()
        assert "would be local's and not cleo's: this server has no keys" in open_
        data = ("--data", str(tmp_path / "data"))
        plain = create(tmp_path, "--user", "ann", *data)
        pipe = create(tmp_path, "--user", "pipe", "--scope", "use", "--scope", "on-behalf-of", *data)
        refused = limelight(*asked, folder=tmp_path, code=2, LIMELIGHT_API_KEY=plain).stderr.decode()
        assert "would be ann's and not cleo's" in refused and "on-behalf-of" in refused
        assert "sessions" in limelight(*asked, folder=tmp_path, LIMELIGHT_API_KEY=pipe).stdout.decode()


def test_scopes_are_listed_for_machines_too(tmp_path: Path) -> None:
    create(tmp_path, "--user", "pipe", "--scope", "on-behalf-of", "--scope", "use")
    (line,) = limelight("keys", "list", "--json", folder=tmp_path).stdout.splitlines()
    key = json.loads(line)
    assert (key["user"], key["scopes"], key["revoked_at"]) == ("pipe", ["use", "on-behalf-of"], None)
    assert "secret_hash" not in key


@pytest.mark.parametrize(
    ("arguments", "hint"),
    [
        (("create", "--user", " "), "at most 256 characters, and at least one"),
        (("create", "--user", "ann", "--scope", "all"), "there are: use, admin, on-behalf-of"),
        (("revoke", "nokey"), "limelight keys list"),
    ],
)
def test_what_is_wrong_is_one_line(tmp_path: Path, arguments: tuple[str, ...], hint: str) -> None:
    said = limelight("keys", *arguments, folder=tmp_path, code=2).stderr.decode()
    assert hint in said
    assert said.count("\n") == 1


def test_a_run_of_ones_own_needs_no_key(tmp_path: Path) -> None:
    create(tmp_path, "--user", "ann")
    told = limelight("run", "x", "--target", f"{AGENTS_FILE}:hello", folder=tmp_path).stdout.decode()
    assert "hello" in told


def test_other_machines_are_served_with_a_key_only(tmp_path: Path) -> None:
    refused = limelight("serve", "--host", "0.0.0.0", "--port", "0", folder=tmp_path, code=2)
    said = refused.stderr.decode()
    assert "limelight keys create" in said and said.count("\n") == 1


def test_there_are_no_keys_at_first(tmp_path: Path) -> None:
    assert limelight("keys", "list", folder=tmp_path).stdout == b"There are no keys.\n"
