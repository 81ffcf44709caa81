"""The data folder that tests of backups use."""

from pathlib import Path

import pytest

from tests.backups.operations import fill


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A data folder as a killed server leaves it: a part of the database is only in its write-ahead log."""
    folder = tmp_path / "data"
    (folder / "workspaces" / "ann" / "deep").mkdir(parents=True)
    (folder / "workspaces" / "ann" / "deep" / "run.sh").write_text("echo")
    (folder / "workspaces" / "ann" / "deep" / "run.sh").chmod(0o755)
    (folder / "keys.json").write_text("[]")
    for name in ("limelight.db.lock", "keys.json.lock", "run.log", "limelight.db.v3.bak"):
        (folder / name).write_text("left out")
    (folder / "link").symlink_to("/etc/hostname")
    (folder / ".restoring").mkdir()
    (folder / ".restoring" / "limelight.db").write_text("left out")
    for name in ("limelight.db", "langgraph.db", "limelight.db.rescued-2"):
        fill(folder / name, "wal")
    fill(folder / "agno.db", "delete")
    return folder
