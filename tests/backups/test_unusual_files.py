"""Backups with unusual files in workspaces and with damaged databases of frameworks: the rest is backed up."""

import errno
import os
import sqlite3
import sys
import tempfile
from collections.abc import Callable, Generator
from contextlib import closing
from pathlib import Path

import pytest

from limelight import file_trees
from limelight.backups import create, file_copy
from limelight.backups.content import Content, find_content
from limelight.backups.create import create_backup
from limelight.backups.restore import restore
from limelight.errors import SetupError
from tests.backups.operations import back_up, count, damage, fill, names_in, nothing

NOBODY = 65534


@pytest.fixture
def foreign_folder() -> Generator[Path]:
    """A folder of another user. Root may read everything, so it becomes that user."""
    user = os.geteuid()
    with tempfile.TemporaryDirectory() as folder:
        if user == 0:
            os.chown(folder, NOBODY, NOBODY)
            os.seteuid(NOBODY)
        try:
            yield Path(folder)
        finally:
            os.seteuid(user)
            for path in Path(folder).rglob("*"):
                path.chmod(0o700)


def test_unreadable_files_are_reported_and_the_rest_is_backed_up(foreign_folder: Path) -> None:
    data = foreign_folder / "data"
    work = data / "workspaces" / "ann"
    (work / "closed").mkdir(parents=True)
    (work / "closed" / "inside").write_text("")
    (work / "open").write_text("open")
    (work / "secret").write_text("")
    (data / "locked.db").write_text("")
    fill(data / "limelight.db", "wal")
    for path in (work / "closed", work / "secret", data / "locked.db"):
        path.chmod(0)
    made = back_up(data, foreign_folder / "copy")
    assert made.unread == dict.fromkeys(
        ["workspaces/ann/closed/", "workspaces/ann/secret", "locked.db"], "Permission denied"
    )
    assert (made.files, made.databases, made.doubtful) == (1, ["limelight.db"], {})
    assert names_in(foreign_folder / "copy" / "workspaces" / "ann") == ["open"]
    assert restore(foreign_folder / "copy", foreign_folder / "new", nothing).files == 1


@pytest.fixture
def cleared(tmp_path: Path) -> Generator[None]:
    """Delete the folders of the test, which are too deep for pytest."""
    yield
    file_trees.remove_tree(tmp_path)
    assert not tmp_path.exists()


@pytest.fixture
def small_stack() -> Generator[None]:
    """A recursion limit below the depth of the folders."""
    usual = sys.getrecursionlimit()
    sys.setrecursionlimit(400)
    yield
    sys.setrecursionlimit(usual)


@pytest.mark.usefixtures("cleared", "small_stack")
@pytest.mark.parametrize("name", ["copy", "copy.tar.gz"])
def test_folders_deeper_than_the_recursion_limit_are_backed_up(data: Path, tmp_path: Path, name: str) -> None:
    depth = 450
    deep = data / "workspaces"
    for _ in range(depth):
        deep /= "d"
        deep.mkdir()
    (deep / "file").write_text("deep")
    made = back_up(data, tmp_path / name)
    assert (made.files, made.unread) == (3, {})
    restore(tmp_path / name, tmp_path / "new", nothing)
    assert (tmp_path / "new" / "workspaces" / "/".join("d" * depth) / "file").read_text() == "deep"
    assert names_in(tmp_path) == sorted(["data", "new", name])


def test_path_that_is_too_long_in_the_backup_is_reported(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def make_folders(folder: Path) -> None:
        if folder.name == "deep":
            raise OSError(errno.ENAMETOOLONG, "File name too long")
        real(folder)

    real = file_copy.make_folders
    monkeypatch.setattr(file_copy, "make_folders", make_folders)
    made = back_up(data, tmp_path / "copy")
    assert made.unread == {"workspaces/ann/deep/run.sh": "its path would be too long in the backup"}


@pytest.mark.requirement("backup-complete-or-none")
def test_full_target_disk_fails_the_backup(data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def make_folders(folder: Path) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(file_copy, "make_folders", make_folders)
    with pytest.raises(SetupError, match="No space left"):
        back_up(data, tmp_path / "copy")
    assert names_in(tmp_path) == ["data"]


@pytest.mark.parametrize("name", ["copy", "copy.tar.gz"])
def test_file_names_that_are_not_utf8_are_backed_up(data: Path, tmp_path: Path, name: str) -> None:
    odd = os.fsdecode(b"workspaces/ann/\xff\n\x1b")
    (data / odd).write_text("odd")
    assert back_up(data, tmp_path / name).files == 3
    restore(tmp_path / name, tmp_path / "new", nothing)
    assert (tmp_path / "new" / odd).read_text() == "odd"


# Files that change during the backup


def back_up_after(
    change: Callable[[], object], data: Path, target: Path, monkeypatch: pytest.MonkeyPatch
) -> create.CreatedBackup:
    """Call `change` after the folder was listed and before its files are read."""

    def listed(data: Path, store: Path) -> Content:
        content = find_content(data, store)
        change()
        return content

    monkeypatch.setattr(create, "find_content", listed)
    return back_up(data, target)


def move_away(path: Path) -> Path:
    return path.rename(path.with_name("moved"))


def delete(path: Path) -> None:
    move_away(path)


def replace_by_link(path: Path) -> None:
    """A link to a file that the agent may not read."""
    secret = path.parents[4] / "secret"
    secret.write_text("secret")
    move_away(path)
    path.symlink_to(secret)


def replace_folder_by_link(path: Path) -> None:
    secrets = path.parents[4] / "secrets"
    secrets.mkdir()
    (secrets / path.name).write_text("secret")
    move_away(path.parent)
    path.parent.symlink_to(secrets)


def replace_by_pipe(path: Path) -> None:
    move_away(path)
    os.mkfifo(path)


@pytest.mark.parametrize("change", [delete, replace_by_link, replace_folder_by_link, replace_by_pipe])
def test_path_replaced_by_another_kind_of_file_is_skipped(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: Callable[[Path], None]
) -> None:
    script = data / "workspaces" / "ann" / "deep" / "run.sh"
    made = back_up_after(lambda: change(script), data, tmp_path / "copy", monkeypatch)
    assert (made.files, made.unread) == (1, {})
    assert not (tmp_path / "copy" / "workspaces" / "ann" / "deep" / "run.sh").exists()


def test_folder_that_disappears_while_it_is_listed_is_skipped(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def list_folder(root: Path, name: str) -> tuple[list[str], list[str]]:
        folders, files = real(root, name)
        if name == "workspaces":
            move_away(data / "workspaces" / "ann").rename(tmp_path / "ann")
        return folders, files

    real = file_trees.list_folder
    monkeypatch.setattr("limelight.backups.content.list_folder", list_folder)
    made = back_up(data, tmp_path / "copy")
    assert (made.files, made.unread) == (1, {})


def test_growing_file_is_copied_up_to_its_first_size(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = data / "workspaces" / "ann" / "deep" / "run.sh"

    def read(source: int, size: int) -> bytes:
        if os.path.samestat(os.fstat(source), script.stat()):
            with script.open("a") as file:
                file.write("more")
        return os.read(source, size)

    monkeypatch.setattr(file_copy, "_read", read)
    back_up(data, tmp_path / "copy")
    assert (tmp_path / "copy" / "workspaces" / "ann" / "deep" / "run.sh").read_text() == "echo"


# Databases of frameworks


def ruin(path: Path) -> None:
    """Overwrite a database with its first bytes."""
    path.write_bytes(b"\xff" * 5000)


@pytest.mark.parametrize("hurt", [damage, ruin])
@pytest.mark.parametrize("name", ["langgraph.db", "agno.db", "limelight.db.rescued-2"])
def test_damaged_framework_database_is_copied_byte_by_byte(
    data: Path, tmp_path: Path, hurt: Callable[[Path], None], name: str
) -> None:
    hurt(data / name)
    (data / f"{name}-wal").write_bytes(b"its log")
    made = back_up(data, tmp_path / "copy")
    if hurt is ruin and not name.endswith(".db"):
        assert (tmp_path / "copy" / name).read_bytes() == (data / name).read_bytes()
        return
    assert list(made.doubtful) == [name] and made.doubtful[name]
    assert name not in made.databases and len(made.databases) == 3
    restored = restore(tmp_path / "copy", tmp_path / "new", nothing)
    assert restored.doubtful == made.doubtful
    assert (tmp_path / "new" / name).read_bytes() == (data / name).read_bytes()
    assert (tmp_path / "new" / f"{name}-wal").exists()
    assert count(tmp_path / "new" / "limelight.db") == 100


def test_damaged_framework_database_without_its_wal_is_left_out(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def open_inside(root: Path, name: str) -> int:
        if name == "langgraph.db-wal":
            raise PermissionError(errno.EACCES, "Permission denied")
        return file_trees.open_inside(root, name)

    ruin(data / "langgraph.db")
    monkeypatch.setattr(file_copy, "open_inside", open_inside)
    made = back_up(data, tmp_path / "copy")
    assert (made.unread, made.doubtful) == ({"langgraph.db": "Permission denied"}, {})
    assert not [*(tmp_path / "copy").glob("langgraph*")]


def test_locked_framework_database_is_copied_byte_by_byte(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("limelight.stores.sqlite.snapshots.LOCK_SECONDS", 0)
    with closing(sqlite3.connect(data / "agno.db", isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        made = create_backup(data, data / "limelight.db", tmp_path / "copy", at=1, version="1", progress=nothing)
    assert made.doubtful == {"agno.db": "database is locked"}
    assert count(tmp_path / "copy" / "agno.db") == 100
