"""`limelight doctor`: what it finds, and what it says about it."""

import json
import time
from pathlib import Path
from typing import Any

import httpx
import pytest

from limelight.backups.content import LastBackup, write_last_backup
from limelight.client import SyncClient
from tests.cli.runner import limelight
from tests.client.server_thread import serve_in_thread, wait_until
from tests.system.processes.agents import hello
from tests.system.processes.server_process import free_port

PORT = str(free_port())


def doctor(folder: Path, *arguments: str, code: int = 0, data: str = "data") -> dict[str, Any]:
    """The findings by what was checked."""
    environment: dict[str, Any] = {"LIMELIGHT_DATA": data, "LIMELIGHT_PORT": PORT}
    lines = limelight("doctor", "--json", *arguments, folder=folder, code=code, **environment).stdout.splitlines()
    return {finding["what"]: finding for finding in map(json.loads, lines)}


def test_doctor_names_the_source_of_the_settings(tmp_path: Path) -> None:
    assert f"no config.toml in {tmp_path}" in doctor(tmp_path)["settings"]["found"]
    (tmp_path / "config.toml").write_text("[limits]\nrun_seconds = 60\n")
    assert doctor(tmp_path)["settings"]["found"] == f"{tmp_path / 'config.toml'}, then environment"
    (tmp_path / "other.toml").write_text("")
    named = doctor(tmp_path, "--config", "other.toml")
    assert named["settings"]["found"] == f"{tmp_path / 'other.toml'}, then environment"


def test_doctor_marks_what_is_wrong_and_exits_with_1(tmp_path: Path) -> None:
    healthy = limelight("doctor", folder=tmp_path, LIMELIGHT_PORT=PORT).stdout
    assert "✗" not in healthy
    for what in ("python", "parts", "settings", "agents", "address", "port", "data", "store", "model"):
        assert what in healthy
    (tmp_path / "file").write_text("")
    wrong = [finding for finding in doctor(tmp_path, code=1, data="file/x").values() if finding["state"] == "wrong"]
    assert [finding["what"] for finding in wrong] == ["data", "store"]
    assert wrong[0]["fix"]
    invalid = limelight("doctor", folder=tmp_path, code=1, LIMELIGHT_PORT="many").stdout
    assert "✗ settings" in invalid


def test_doctor_reports_a_backup_that_is_old_or_missing(tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir()
    assert doctor(tmp_path)["backup"]["state"] == "note"
    (tmp_path / "copy").mkdir()
    now, day = int(time.time() * 1000), 24 * 3600 * 1000
    write_last_backup(data, LastBackup(now - 6 * day, str(tmp_path / "copy")))
    assert doctor(tmp_path)["backup"]["state"] == "ok"
    write_last_backup(data, LastBackup(now - 8 * day, str(tmp_path / "copy")))
    old = doctor(tmp_path)["backup"]
    assert old["state"] == "note" and old["found"].endswith("copy, 8 days old")
    write_last_backup(data, LastBackup(now, str(tmp_path / "elsewhere")))
    gone = doctor(tmp_path)["backup"]
    assert gone["state"] == "note" and "no longer exists" in gone["found"]


def test_doctor_checks_the_data_folder_of_its_option(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    write_last_backup(tmp_path / "mine", LastBackup(int(time.time() * 1000), str(tmp_path)))
    found = doctor(tmp_path, "--data", "mine")
    assert found["data"]["found"].startswith(str(tmp_path / "mine"))
    assert found["backup"]["state"] == "ok"


def test_doctor_names_a_file_that_it_cannot_read(tmp_path: Path) -> None:
    """A folder in place of the lock file cannot be opened, not even by root."""
    (tmp_path / "data" / "limelight.db.lock").mkdir(parents=True)
    found = doctor(tmp_path, code=1)["store"]
    assert found["state"] == "wrong" and "limelight.db.lock" in found["found"]


def test_doctor_asks_the_running_server_whether_its_store_works(tmp_path: Path) -> None:
    with serve_in_thread(hello, data=tmp_path / "data") as served, SyncClient(served.url) as client:
        client.ask("hi")
        port = served.url.rpartition(":")[2]
        environment: dict[str, Any] = {"LIMELIGHT_PORT": port, "LIMELIGHT_DATA": "data"}
        healthy = limelight("doctor", folder=tmp_path, **environment).stdout
        assert f"{port}: a Limelight server answers there\n" in healthy
        (tmp_path / "data").rename(tmp_path / "aside")
        wait_until(lambda: httpx.get(f"{served.url}/ready").status_code == 503)  # a check that is running comes first
        failed = limelight("doctor", folder=tmp_path, code=1, **environment).stdout
        assert "a Limelight server answers there; its store: failed: the database file is gone" in failed
        (tmp_path / "aside").rename(tmp_path / "data")


def test_doctor_reports_a_data_folder_that_other_users_can_read(tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir()
    data.chmod(0o755)
    found = doctor(tmp_path)["data"]
    assert found["state"] == "note" and "other users" in found["found"]
    assert found["fix"] == f"make it private: chmod 700 {data}"
    data.chmod(0o700)
    assert doctor(tmp_path)["data"]["state"] == "ok"


def test_doctor_names_the_project_and_the_environment_file(tmp_path: Path) -> None:
    assert not {"project", "env_file"} & doctor(tmp_path).keys()
    (tmp_path / "langgraph.json").write_text('{"graphs": {"bees": "./bees.py:graph"}, "dependencies": ["."]}')
    (tmp_path / ".env").write_text("BEES=1\nnonsense\n")
    found = doctor(tmp_path)
    assert found["project"]["found"] == "langgraph.json: bees; serve its graphs with: limelight serve ."
    assert (found["env_file"]["state"], found["env_file"]["fix"][-2:]) == ("note", " 2")
    (tmp_path / "langgraph.json").write_text('{"graphs": {"bees": "b.py:g"}, "dependencies": ["no-such-bees"]}')
    (tmp_path / ".env").write_text("BEES=1\n")
    found = doctor(tmp_path)
    assert found["project"]["fix"] == "install them: pip install no-such-bees"
    assert found["env_file"]["found"] == ".env: variables for your own agents: 1"


@pytest.mark.requirement("sandbox-reported")
@pytest.mark.parametrize(
    ("level", "state", "expected"),
    [
        ("bubblewrap", "ok", "bubblewrap: for code of codact"),
        ("landlock", "ok", "landlock: for code of codact (set by sandbox.level)"),
        ("none", "note", "none: code of codact runs unconfined (set by sandbox.level)"),
    ],
)
def test_doctor_names_the_level_of_the_sandbox_and_why_it_is_weaker(
    level: str, state: str, expected: str, tmp_path: Path
) -> None:
    (tmp_path / "config.toml").write_text(f"[sandbox]\nlevel = '{level}'\n")
    found = doctor(tmp_path)["sandbox"]
    assert (found["state"], found["found"]) == (state, expected)


@pytest.mark.requirement("sandbox-level-setting")
def test_doctor_refuses_a_level_of_the_sandbox_that_does_not_exist(tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_text("[sandbox]\nlevel = 'docker'\n")
    found = doctor(tmp_path, code=1)["settings"]
    assert found["state"] == "wrong"
    assert "config.toml:2" in found["found"] and "bubblewrap" in found["found"] and "docker" in found["found"]
