"""Backups are complete or absent, consistent while others write, private, and restored unchanged."""

import sqlite3
import tarfile
import threading
from contextlib import closing
from pathlib import Path

import pytest

from limelight.backups.content import LastBackup, Manifest, find_content, read_last_backup
from limelight.backups.create import create_backup
from limelight.backups.restore import restore
from limelight.errors import SetupError
from limelight.stores.sqlite import snapshots
from tests.backups.operations import back_up, count, damage, modes, names_in, nothing, refused

TARGETS = ["copy", "copy.tar.gz", "copy.tgz"]


@pytest.mark.parametrize("name", TARGETS)
def test_backup_then_restore_is_identical(data: Path, tmp_path: Path, name: str) -> None:
    made = back_up(data, tmp_path / name)
    assert sorted(made.databases) == ["agno.db", "langgraph.db", "limelight.db", "limelight.db.rescued-2"]
    assert (made.unread, made.doubtful) == ({}, {})
    assert read_last_backup(data) == LastBackup(1000, str(tmp_path / name))
    seen: list[list[str]] = []
    manifest = restore(tmp_path / name, tmp_path / "again", lambda folder: seen.append(names_in(folder)))
    assert manifest == Manifest(limelight="1.2", made_at=1000, databases=made.databases, files=2)
    again = tmp_path / "again"
    assert seen == [["agno.db", "keys.json", "langgraph.db", "limelight.db", "limelight.db.rescued-2", "workspaces"]]
    assert [count(again / name) for name in made.databases] == [100] * 4
    script = again / "workspaces" / "ann" / "deep" / "run.sh"
    assert (script.read_text(), script.stat().st_mode & 0o777) == ("echo", 0o700)
    assert modes(again) == {0}
    assert names_in(tmp_path) == sorted(["data", name, "again"])


@pytest.mark.requirement("backup-private")
def test_backup_is_private(data: Path, tmp_path: Path) -> None:
    back_up(data, tmp_path / "copy")
    back_up(data, tmp_path / "copy.tar.gz")
    assert modes(tmp_path / "copy") == {0}
    assert (tmp_path / "copy.tar.gz").stat().st_mode & 0o777 == 0o600


def test_backup_contains_what_is_only_in_the_wal(data: Path, tmp_path: Path) -> None:
    with closing(sqlite3.connect(data / "limelight.db", isolation_level=None)) as server:
        server.execute("INSERT INTO rows VALUES (100, '')")
        assert (data / "limelight.db-wal").stat().st_size
        back_up(data, tmp_path / "copy")
    assert count(tmp_path / "copy" / "limelight.db") == 101


def test_backup_is_a_snapshot_and_does_not_block_writers(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another connection writes between the steps of the copy. A copy that restarted each time would not end."""
    monkeypatch.setattr(snapshots, "STEP_PAGES", 1)
    steps: list[int] = []
    with closing(sqlite3.connect(data / "limelight.db", timeout=0, isolation_level=None)) as server:

        def write(what: str, done: int, total: int) -> None:
            if what == "limelight.db" and done < total:
                server.execute("INSERT INTO rows VALUES (?, '')", (100 + len(steps),))
                steps.append(done)

        create_backup(data, data / "limelight.db", tmp_path / "copy", at=1, version="1", progress=write)
    assert len(steps) > 10
    assert count(tmp_path / "copy" / "limelight.db") == 100
    assert count(data / "limelight.db") == 100 + len(steps)


def test_backup_reads_the_store_before_other_databases(data: Path, tmp_path: Path) -> None:
    """What was written to another database before it was written to the store is in the backup too."""
    stop = threading.Event()

    def write() -> None:
        first, second = (
            sqlite3.connect(data / name, isolation_level=None) for name in ("langgraph.db", "limelight.db")
        )
        with closing(first), closing(second):
            number = 100
            while not stop.is_set():
                for db in (first, second):
                    db.execute("INSERT INTO rows VALUES (?, '')", (number,))
                number += 1

    writer = threading.Thread(target=write)
    writer.start()
    try:
        back_up(data, tmp_path / "copy")
    finally:
        stop.set()
        writer.join(30)
    later, earlier = (count(tmp_path / "copy" / name) for name in ("langgraph.db", "limelight.db"))
    assert earlier >= 100 and later >= earlier


def test_backup_includes_a_store_outside_the_data_folder(data: Path, tmp_path: Path) -> None:
    (data / "limelight.db").rename(tmp_path / "mine.db")
    content = find_content(data, tmp_path / "mine.db")
    assert content.databases["limelight.db"] == tmp_path / "mine.db"
    create_backup(data, tmp_path / "mine.db", tmp_path / "copy", at=1, version="1", progress=nothing)
    assert count(tmp_path / "copy" / "limelight.db") == 100


# Refusals


@pytest.mark.requirement("backup-complete-or-none")
@pytest.mark.parametrize("name", TARGETS)
def test_backup_does_not_overwrite_its_target(data: Path, tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text("mine")
    assert "is there already" in refused(lambda: back_up(data, tmp_path / name), tmp_path)
    assert (tmp_path / name).read_text() == "mine"


def test_backup_inside_the_data_folder_is_refused(data: Path) -> None:
    assert "somewhere else" in refused(lambda: back_up(data, data / "copy"), data)


def test_backup_inside_the_data_folder_through_a_link_is_refused(data: Path, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").symlink_to(data / "workspaces")
    assert "somewhere else" in refused(lambda: back_up(data, tmp_path / "elsewhere" / "copy"), data / "workspaces")


def test_backup_without_a_store_file_is_refused(tmp_path: Path) -> None:
    assert "nothing to back up" in refused(lambda: back_up(tmp_path / "no", tmp_path / "copy"), tmp_path)


def test_backup_of_a_damaged_store_is_refused(data: Path, tmp_path: Path) -> None:
    damage(data / "limelight.db")
    assert "limelight.db is damaged" in refused(lambda: back_up(data, tmp_path / "copy"), tmp_path)
    assert read_last_backup(data) is None


def test_backup_of_a_store_that_is_not_a_database_is_refused(data: Path, tmp_path: Path) -> None:
    (data / "limelight.db").write_text("something else")
    assert "limelight.db is damaged" in refused(lambda: back_up(data, tmp_path / "copy"), tmp_path)


@pytest.mark.parametrize("name", TARGETS)
def test_restore_needs_an_empty_folder(data: Path, tmp_path: Path, name: str) -> None:
    back_up(data, tmp_path / name)
    assert "is not empty" in refused(lambda: restore(tmp_path / name, data, nothing), tmp_path)
    (tmp_path / "empty").mkdir()
    restore(tmp_path / name, tmp_path / "empty", nothing)
    assert count(tmp_path / "empty" / "limelight.db") == 100


@pytest.mark.requirement("restore-checked")
def test_restore_of_a_damaged_backup_is_refused(data: Path, tmp_path: Path) -> None:
    back_up(data, tmp_path / "copy")
    damage(tmp_path / "copy" / "limelight.db")
    assert "limelight.db is damaged" in refused(lambda: restore(tmp_path / "copy", tmp_path / "new", nothing), tmp_path)


def test_restore_of_a_truncated_archive_is_refused(data: Path, tmp_path: Path) -> None:
    archive = tmp_path / "copy.tar.gz"
    back_up(data, archive)
    archive.write_bytes(archive.read_bytes()[: archive.stat().st_size // 2])
    assert "cannot be restored" in refused(lambda: restore(archive, tmp_path / "new", nothing), tmp_path)


def test_restore_of_something_else_is_refused(data: Path, tmp_path: Path) -> None:
    assert "is not a backup" in refused(lambda: restore(data, tmp_path / "new", nothing), tmp_path)
    assert "neither" in refused(lambda: restore(data / "keys.json", tmp_path / "new", nothing), tmp_path)
    assert "there is no" in refused(lambda: restore(tmp_path / "nowhere", tmp_path / "new", nothing), tmp_path)


def test_restore_of_a_backup_without_one_of_its_databases_is_refused(data: Path, tmp_path: Path) -> None:
    back_up(data, tmp_path / "copy")
    (tmp_path / "copy" / "agno.db").unlink()
    assert "agno.db is missing" in refused(lambda: restore(tmp_path / "copy", tmp_path / "new", nothing), tmp_path)


def test_restore_of_an_archive_with_paths_outside_is_refused(tmp_path: Path) -> None:
    (tmp_path / "evil").write_text("evil")
    with tarfile.open(tmp_path / "copy.tar.gz", "w:gz") as archive:
        archive.add(tmp_path / "evil", arcname="../../outside")
    work = tmp_path / "work"
    work.mkdir()
    assert "cannot be restored" in refused(lambda: restore(tmp_path / "copy.tar.gz", work / "new", nothing), tmp_path)


def test_restore_is_refused_if_the_store_rejects_the_folder(data: Path, tmp_path: Path) -> None:
    def examine(folder: Path) -> None:
        raise SetupError("too new")

    back_up(data, tmp_path / "copy")
    assert refused(lambda: restore(tmp_path / "copy", tmp_path / "new", examine), tmp_path) == "too new"
