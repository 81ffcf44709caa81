"""`limelight keys`: create, list and revoke, beside a server and without one."""

import json
from pathlib import Path

import httpx
import pytest

from tests.cli.runner import limelight
from tests.client.server_thread import serve_in_thread
from tests.system.processes.agents import hello
from tests.system.processes.server_process import AGENTS_FILE


def create(folder: Path, *arguments: str) -> str:
    """Create a key, which is the only word on stdout."""
    stdout = limelight("keys", "create", *arguments, folder=folder).stdout
    assert stdout.count("\n") == 1
    return stdout.split()[-1]


def test_key_is_created_used_and_revoked_while_a_server_runs(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    data = ("--data", str(tmp_path / "data"))
    with serve_in_thread(hello, data=tmp_path / "data") as served:
        url = served.url
        assert httpx.get(f"{url}/agents").status_code == 200
        key = create(tmp_path, "--user", "ann", *data)
        assert httpx.get(f"{url}/agents").status_code == 401
        run = limelight("run", "hi", "--url", url, folder=tmp_path, LIMELIGHT_API_KEY=key)
        assert "hello" in run.stdout
        refused = limelight("sessions", "--url", url, folder=tmp_path, code=2).stderr
        assert refused.startswith("limelight: ") and "key" in refused
        listed = limelight("keys", "list", *data, folder=tmp_path).stdout.splitlines()
        assert listed[1].split()[:3] == [key.split("_")[1], "ann", "use"]
        assert key not in "".join(listed)
        limelight("keys", "revoke", key, *data, folder=tmp_path)
        assert httpx.get(f"{url}/agents", headers={"authorization": f"Bearer {key}"}).status_code == 401
    assert key.rpartition("_")[2] not in caplog.text


def test_user_option_is_refused_without_the_scope_on_behalf_of(tmp_path: Path) -> None:
    with serve_in_thread(hello, data=tmp_path / "data") as served:
        sessions = ("sessions", "--url", served.url, "--user", "cleo")
        without_keys = limelight(*sessions, folder=tmp_path, code=2).stderr
        assert "would act for local, not for cleo: this server has no keys" in without_keys
        data = ("--data", str(tmp_path / "data"))
        plain = create(tmp_path, "--user", "ann", *data)
        pipe = create(tmp_path, "--user", "pipe", "--scope", "use", "--scope", "on-behalf-of", *data)
        refused = limelight(*sessions, folder=tmp_path, code=2, LIMELIGHT_API_KEY=plain).stderr
        assert "would act for ann, not for cleo" in refused and "on-behalf-of" in refused
        assert "sessions" in limelight(*sessions, folder=tmp_path, LIMELIGHT_API_KEY=pipe).stdout


def test_keys_list_json_has_scopes_and_no_hash(tmp_path: Path) -> None:
    create(tmp_path, "--user", "pipe", "--scope", "on-behalf-of", "--scope", "use")
    (line,) = limelight("keys", "list", "--json", folder=tmp_path).stdout.splitlines()
    key = json.loads(line)
    assert (key["user"], key["scopes"], key["revoked_at"]) == ("pipe", ["use", "on-behalf-of"], None)
    assert "secret_hash" not in key


@pytest.mark.parametrize(
    ("arguments", "hint"),
    [
        (("create", "--user", ""), "at most 256 characters, and at least one"),
        (("create", "--user", " "), "no spaces around it"),
        (("create", "--user", "ann "), "no spaces around it"),
        (("create", "--user", "ann", "--scope", "all"), "there are: use, admin, on-behalf-of"),
        (("revoke", "nokey"), "limelight keys list"),
    ],
)
def test_invalid_key_commands_print_one_line(tmp_path: Path, arguments: tuple[str, ...], hint: str) -> None:
    stderr = limelight("keys", *arguments, folder=tmp_path, code=2).stderr
    assert hint in stderr
    assert stderr.count("\n") == 1


def test_run_with_its_own_server_needs_no_key(tmp_path: Path) -> None:
    create(tmp_path, "--user", "ann")
    assert "hello" in limelight("run", "x", "--target", f"{AGENTS_FILE}:hello", folder=tmp_path).stdout


def test_keys_list_without_keys_prints_a_note(tmp_path: Path) -> None:
    assert limelight("keys", "list", folder=tmp_path).stdout == "There are no keys.\n"
