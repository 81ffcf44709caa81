"""`limelight backup` of a server with a live run, and a server on the restored folder."""

import json
from pathlib import Path

import pytest

from tests.system.commands.command_process import limelight
from tests.system.processes.server_process import ServerProcess, begins_with, free_port, joined

HELLO = {"messages": [{"role": "user", "content": "hi"}], "agent": "hello", "session_id": "s"}


@pytest.mark.requirement("backup-while-running")
def test_backup_of_a_running_server_can_be_restored_and_served(tmp_path: Path) -> None:
    data, port = ("--data", "data"), free_port()
    with ServerProcess(tmp_path / "data", "hello", "endless") as server:
        assert server.post("/chat", HELLO)[0] == 200
        live = server.ask(agent="endless", session_id="live", format="records")
        frames = iter(live)
        seen = [next(frames) for _ in range(20)]
        made = limelight("backup", "copy.tar.gz", *data, folder=tmp_path)
        assert made.stdout.decode().startswith("Backed up to copy.tar.gz: limelight.db")
        again = limelight("backup", "copy.tar.gz", *data, folder=tmp_path, code=2).stderr.decode()
        assert again.startswith("limelight: copy.tar.gz is there already")
        doctor = limelight("doctor", "--json", *data, folder=tmp_path, LIMELIGHT_PORT=str(free_port())).stdout
        found = {finding["what"]: finding["found"] for finding in map(json.loads, doctor.splitlines())}
        assert "schema version" in found["store"] and "running server" in found["store"]
        assert found["backup"].endswith("copy.tar.gz")
    restored = limelight("restore", "copy.tar.gz", "--data", "new", folder=tmp_path).stdout.decode()
    assert "limelight serve --data new" in restored
    with ServerProcess(tmp_path / "new", "hello", port=port) as server:
        assert server.get("/sessions/s")[1]["turns"] == 1
        kept = server.follow(live.run_id, format_="records").take(10**9)
        assert begins_with(joined("records", kept), joined("records", seen))
        assert kept[-1][1]["event"]["code"] == "interrupted"
        assert server.post("/chat", HELLO)[0] == 200
