"""Restore into an existing folder, which may be a volume: its parent is not writable, and it cannot be replaced."""

import tarfile
from pathlib import Path

import pytest

from limelight.backups.restore import restore
from limelight.errors import SetupError
from tests.backups.operations import back_up, count, modes, names_in, nothing, refused


@pytest.fixture
def volume(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty volume: it cannot be renamed or replaced, and no draft can be created beside it."""
    path = tmp_path / "mounts" / "volume"
    (path / "lost+found").mkdir(parents=True)
    rename = Path.rename

    def refuse(self: Path, target: Path) -> Path:
        if target == path or self == path:
            raise OSError(16, "Device or resource busy")
        return rename(self, target)

    def no_draft(**_: object) -> str:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "rename", refuse)
    monkeypatch.setattr("limelight.backups.restore.mkdtemp", no_draft)
    return path


@pytest.fixture
def copy(data: Path, tmp_path: Path) -> Path:
    back_up(data, tmp_path / "copy")
    return tmp_path / "copy"


def test_restore_into_a_volume(copy: Path, volume: Path) -> None:
    seen: list[Path] = []
    restore(copy, volume, seen.append)
    assert seen == [volume / ".restoring" / "backup"]
    assert {*names_in(volume)} == {*names_in(copy), "lost+found"} - {"backup.json"}
    assert count(volume / "limelight.db") == 100
    assert modes(volume / "workspaces") == {0}


def test_restore_moves_the_database_last(copy: Path, volume: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    order: list[str] = []
    rename = Path.rename

    def note(self: Path, target: Path) -> Path:
        order.append(target.name)
        return rename(self, target)

    monkeypatch.setattr(Path, "rename", note)
    restore(copy, volume, nothing)
    assert len(order) == 6 and order[-1] == "limelight.db"


@pytest.mark.requirement("restore-all-or-nothing")
def test_failed_restore_leaves_no_trace(copy: Path, volume: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rename = Path.rename

    def fail(self: Path, target: Path) -> Path:
        if target.name == "limelight.db":
            raise OSError(5, "Input/output error")
        return rename(self, target)

    monkeypatch.setattr(Path, "rename", fail)
    assert "Input/output error" in refused(lambda: restore(copy, volume, nothing), volume)


def test_restore_does_not_overwrite_the_database_of_a_new_server(copy: Path, volume: Path) -> None:
    def start(_: Path) -> None:
        (volume / "limelight.db").write_text("new")

    with pytest.raises(SetupError, match="created in the meantime"):
        restore(copy, volume, start)
    assert names_in(volume) == ["limelight.db", "lost+found"]
    assert (volume / "limelight.db").read_text() == "new"


def test_restore_reports_an_interrupted_restore(copy: Path, volume: Path) -> None:
    (volume / ".restoring").mkdir()
    assert "was cut off" in refused(lambda: restore(copy, volume, nothing), volume)


def test_restore_into_the_backup_itself_is_refused(copy: Path) -> None:
    assert "inside the backup" in refused(lambda: restore(copy, copy / "new", nothing), copy)


def test_restore_of_an_archive_needs_a_python_with_data_filter(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    back_up(data, tmp_path / "copy.tar.gz")
    monkeypatch.delattr(tarfile, "data_filter")
    assert "Python 3.11.4" in refused(lambda: restore(tmp_path / "copy.tar.gz", tmp_path / "new", nothing), tmp_path)
