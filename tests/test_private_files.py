"""Private files: others lose their permissions, the owner keeps them, and other files are not changed."""

import logging
from pathlib import Path

import pytest

from limelight.private_files import create_private_database, make_private


def test_make_private_keeps_the_permissions_of_the_owner(tmp_path: Path) -> None:
    path = tmp_path / "script.sh"
    path.touch()
    for before, after in ((0o755, 0o700), (0o644, 0o600), (0o440, 0o400), (0o600, 0o600)):
        path.chmod(before)
        make_private(path)
        assert path.stat().st_mode & 0o777 == after
    make_private(tmp_path / "missing")


def test_make_private_logs_a_file_whose_mode_it_cannot_change(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def refuse(path: Path, mode: int) -> None:
        raise PermissionError(1, "Operation not permitted")

    path = tmp_path / "of another user"
    path.touch()
    path.chmod(0o644)
    monkeypatch.setattr(Path, "chmod", refuse)
    caplog.set_level(logging.WARNING)
    make_private(path)
    assert f"{path}, and its mode cannot be changed: Operation not permitted" in caplog.text


def test_create_private_database_changes_no_file_with_another_name(tmp_path: Path) -> None:
    for name in ("a[b].db-wal", "ab.db-wal"):
        (tmp_path / name).touch()
        (tmp_path / name).chmod(0o644)
    create_private_database(tmp_path / "a[b].db")
    modes = {file.name: file.stat().st_mode & 0o777 for file in tmp_path.iterdir()}
    assert modes == {"a[b].db": 0o600, "a[b].db-wal": 0o600, "ab.db-wal": 0o644}
