"""`limelight backup` and `restore` without a running server."""

from pathlib import Path

from limelight.backups.create import CreatedBackup
from limelight.cli.backup import warning_lines
from tests.cli.runner import limelight
from tests.system.processes.server_process import AGENTS_FILE


def make_run(folder: Path) -> None:
    limelight("run", "hi", "--target", f"{AGENTS_FILE}:hello", "--plain", folder=folder)


def test_backup_and_restore_use_the_store_of_the_configuration(tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_text('[store]\nurl = "sqlite:///mine.db"\n')
    missing = limelight("backup", "copy", folder=tmp_path, code=2).stderr
    assert "nothing to back up: no mine.db" in missing
    make_run(tmp_path)
    limelight("backup", "copy", folder=tmp_path)
    restored = limelight("restore", "copy", "--data", "new", folder=tmp_path).stdout
    assert (tmp_path / "new" / "limelight.db").exists()
    assert "move new/limelight.db to mine.db" in restored and "limelight serve --data new" in restored


def test_restore_says_how_to_serve_the_folder(tmp_path: Path) -> None:
    make_run(tmp_path)
    limelight("backup", "copy", folder=tmp_path)
    restored = limelight("restore", "copy", "--data", "new", folder=tmp_path).stdout
    assert restored.endswith(": limelight serve --data new\n")
    (tmp_path / "config.toml").write_text('[store]\nurl = "sqlite:///third/limelight.db"\n')
    restored = limelight("restore", "copy", "--data", "third", folder=tmp_path).stdout
    assert restored.endswith(": limelight serve --data third\n")


def test_backup_and_restore_report_a_damaged_database(tmp_path: Path) -> None:
    make_run(tmp_path)
    (tmp_path / ".limelight" / "agno.db").write_text("no database")
    (line,) = limelight("backup", "copy", folder=tmp_path).stderr.splitlines()
    assert line.startswith("agno.db may be damaged (file is not a database")
    restored = limelight("restore", "copy", "--data", "new", folder=tmp_path).stderr
    assert restored.startswith("agno.db may be damaged")


def test_backup_names_ten_missing_files_and_counts_the_others() -> None:
    unread = {f"workspaces/\x1b[31m{number}\n\udcff": "Permission denied" for number in range(12)}
    made = CreatedBackup(limelight="1", made_at=1, databases=[], files=0, size=0, unread=unread)
    lines = [*warning_lines(made)]
    assert lines[0] == "workspaces/\\x1b[31m0\\n\\udcff is not in the backup: Permission denied"
    assert (len(lines), lines[-1]) == (11, "and 2 more")
