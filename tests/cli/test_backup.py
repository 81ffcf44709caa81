"""`limelight backup`, `restore`, and what `doctor` says about the store, as a shell sees them, beside a server."""

import json
from pathlib import Path
from typing import Any

from tests.cli.test_commands import limelight
from tests.faults.process import ServerProcess, begins_with, free_port, joined

HELLO = {"messages": [{"role": "user", "content": "hi"}], "agent": "hello", "session_id": "s"}


def doctor(folder: Path) -> dict[str, Any]:
    said = limelight("doctor", "--json", folder=folder, LIMELIGHT_DATA="data", LIMELIGHT_PORT=str(free_port()))
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
