"""Garbage collection of a server process does not examine the objects of its frameworks."""

from pathlib import Path

from tests.support.wait import wait_for
from tests.system.processes.server_process import ServerProcess


def frozen_objects(server: ServerProcess) -> int:
    body = {"messages": [{"role": "user", "content": "x"}], "agent": "counts_frozen_objects"}
    return int(server.post("/chat", body)[1]["message"]["content"])


def test_objects_of_loaded_frameworks_are_frozen(tmp_path: Path) -> None:
    """The built-in agent is loaded in the background; a server has about 30,000 objects without its framework."""
    with ServerProcess(tmp_path / "data", "counts_frozen_objects") as server:
        wait_for("the objects to be frozen", lambda: frozen_objects(server) > 0)
        without = frozen_objects(server)
    builtin = ServerProcess(tmp_path / "builtin", "counts_frozen_objects")
    builtin.command.append("deep")
    with builtin as server:
        wait_for("the objects of the framework to be frozen", lambda: frozen_objects(server) > 1.5 * without)
