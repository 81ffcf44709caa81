"""`limelight backup`, `restore`, and what `doctor` says about the store, as a shell sees them, beside a server."""

import json
import time
from pathlib import Path
from typing import Any

from limelight.backups.content import LastBackup, write_last_backup
from limelight.backups.create import CreatedBackup
from limelight.cli.backup import warnings_of
from tests.cli.test_commands import limelight
from tests.support.wait import eventually
from tests.system.processes.server_process import ServerProcess, begins_with, free_port, joined

HELLO = {"messages": [{"role": "user", "content": "hi"}], "agent": "hello", "session_id": "s"}


def doctor(folder: Path, code: int = 0) -> dict[str, Any]:
    port = str(free_port())
    said = limelight("doctor", "--json", folder=folder, code=code, LIMELIGHT_DATA="data", LIMELIGHT_PORT=port)
    return {finding["what"]: finding for finding in map(json.loads, said.stdout.splitlines())}


def test_beside_a_server_and_back_again(tmp_path: Path) -> None:
    data, port = ("--data", "data"), free_port()
    with ServerProcess(tmp_path / "data", "hello", "endless") as server:
        assert server.post("/chat", HELLO)[0] == 200
        live = server.ask(agent="endless", session_id="live", format="records")
        frames = iter(live)
        seen = [next(frames) for _ in range(20)]
        said = limelight("backup", "copy.tar.gz", *data, folder=tmp_path)
        assert said.stdout.decode().startswith("Backed up to copy.tar.gz: limelight.db")
        twice = limelight("backup", "copy.tar.gz", *data, folder=tmp_path, code=2).stderr.decode()
        assert twice.startswith("limelight: copy.tar.gz is there already")
        found = doctor(tmp_path)
        assert "schema version" in found["store"]["found"] and "running server" in found["store"]["found"]
        assert found["backup"]["found"].endswith("copy.tar.gz")
    restored = limelight("restore", "copy.tar.gz", "--data", "new", folder=tmp_path).stdout.decode()
    assert "limelight serve --data new" in restored
    with ServerProcess(tmp_path / "new", "hello", port=port) as server:
        assert server.get("/sessions/s")[1]["turns"] == 1
        kept = server.follow(live.run_id, format_="records").take(10**9)
        assert begins_with(joined("records", kept), joined("records", seen))
        assert kept[-1][1]["event"]["code"] == "interrupted"
        assert server.post("/chat", HELLO)[0] == 200


def test_a_store_elsewhere_and_without_a_server(tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_text('[store]\nurl = "sqlite:///mine.db"\n')
    nothing = limelight("backup", "copy", folder=tmp_path, code=2).stderr.decode()
    assert "nothing to back up: no mine.db" in nothing
    limelight("run", "hi", "--target", "demo", "--plain", folder=tmp_path)
    limelight("backup", "copy", folder=tmp_path)
    limelight("restore", "copy", "--data", "new", folder=tmp_path)
    assert (tmp_path / "new" / "limelight.db").exists()


def test_where_to_move_a_store_that_belongs_elsewhere(tmp_path: Path) -> None:
    limelight("run", "hi", "--target", "demo", "--plain", folder=tmp_path)
    limelight("backup", "copy", folder=tmp_path)
    assert (
        ": limelight serve --data new\n"
        in limelight("restore", "copy", "--data", "new", folder=tmp_path).stdout.decode()
    )
    (tmp_path / "config.toml").write_text('[store]\nurl = "sqlite:///mine.db"\n')
    said = limelight("restore", "copy", "--data", "other", folder=tmp_path).stdout.decode()
    assert "move other/limelight.db to mine.db" in said and "limelight serve --data other" in said
    (tmp_path / "config.toml").write_text('[store]\nurl = "sqlite:///third/limelight.db"\n')
    said = limelight("restore", "copy", "--data", "third", folder=tmp_path).stdout.decode()
    assert said.endswith(": limelight serve --data third\n")


def test_what_is_damaged_is_told(tmp_path: Path) -> None:
    limelight("run", "hi", "--target", "demo", "--plain", folder=tmp_path)
    (tmp_path / ".limelight" / "agno.db").write_text("no database")
    said = limelight("backup", "copy", folder=tmp_path)
    (line,) = said.stderr.decode().splitlines()
    assert line.startswith("agno.db may be damaged (file is not a database")
    again = limelight("restore", "copy", "--data", "new", folder=tmp_path).stderr.decode()
    assert again.startswith("agno.db may be damaged")


def test_ten_of_what_was_left_out_are_named() -> None:
    unread = {f"workspaces/\x1b[31m{number}\n\udcff": "Permission denied" for number in range(12)}
    made = CreatedBackup(limelight="1", made_at=1, databases=[], files=0, size=0, unread=unread)
    lines = [*warnings_of(made)]
    assert lines[0] == "workspaces/\\x1b[31m0\\n\\udcff is not in the backup: Permission denied"
    assert (len(lines), lines[-1]) == (11, "and 2 more")


def test_the_doctor_knows_when_a_backup_is_old_or_gone(tmp_path: Path) -> None:
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
    assert gone["state"] == "note" and "not there any more" in gone["found"]


async def test_the_doctor_asks_a_server_that_has_lost_its_folder(tmp_path: Path) -> None:
    with ServerProcess(tmp_path / "data", "hello") as server:
        assert server.post("/chat", HELLO)[0] == 200
        port = str(server.port)
        well = limelight("doctor", folder=tmp_path, LIMELIGHT_PORT=port, LIMELIGHT_DATA="data").stdout.decode()
        assert f"{server.port}: a Limelight answers there\n" in well
        (tmp_path / "data").rename(tmp_path / "aside")
        await eventually(lambda: server.get("/ready")[0] == 503)  # it may say for a moment what it knew before
        ill = limelight("doctor", folder=tmp_path, code=1, LIMELIGHT_PORT=port, LIMELIGHT_DATA="data").stdout.decode()
        assert "a Limelight answers there; its store has failed: the database file is gone" in ill
        (tmp_path / "aside").rename(tmp_path / "data")


def test_the_doctor_looks_at_the_folder_that_is_named(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    write_last_backup(tmp_path / "mine", LastBackup(int(time.time() * 1000), str(tmp_path)))
    said = limelight("doctor", "--json", "--data", "mine", folder=tmp_path, LIMELIGHT_PORT=str(free_port()))
    found = {finding["what"]: finding for finding in map(json.loads, said.stdout.splitlines())}
    assert found["data"]["found"].startswith(str(tmp_path / "mine"))
    assert found["backup"]["state"] == "ok"


def test_the_doctor_has_words_for_what_it_cannot_read(tmp_path: Path) -> None:
    """A folder in the place of a file is refused to everybody, root too."""
    (tmp_path / "data" / "limelight.db.lock").mkdir(parents=True)
    found = doctor(tmp_path, code=1)["store"]
    assert found["state"] == "wrong" and "limelight.db.lock" in found["found"]
