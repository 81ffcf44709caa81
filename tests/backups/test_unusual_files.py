"""Whatever agents leave in a workspace, and whatever is wrong beside the store: the important part is backed up."""

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
from limelight.backups.content import Content, content_of
from limelight.backups.create import make_backup
from limelight.backups.restore import restore
from limelight.errors import SetupError
from tests.backups.conftest import fill
from tests.backups.test_backups import back_up, count, damage, names_in, nothing

NOBODY = 65534


@pytest.fixture
def theirs() -> Generator[Path]:
    """A folder of somebody who is not root, as for root everything can be read; root is that one for a while."""
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


def test_what_cannot_be_read_is_named_and_the_rest_is_there(theirs: Path) -> None:
    data = theirs / "data"
    work = data / "workspaces" / "ann"
    (work / "closed").mkdir(parents=True)
    (work / "closed" / "inside").write_text("")
    (work / "open").write_text("open")
    (work / "secret").write_text("")
    (data / "locked.db").write_text("")
    fill(data / "limelight.db", "wal")
    for path in (work / "closed", work / "secret", data / "locked.db"):
        path.chmod(0)
    made = back_up(data, theirs / "copy")
    assert made.unread == dict.fromkeys(
        ["workspaces/ann/closed/", "workspaces/ann/secret", "locked.db"], "Permission denied"
    )
    assert (made.files, made.databases, made.doubtful) == (1, ["limelight.db"], {})
    assert names_in(theirs / "copy" / "workspaces" / "ann") == ["open"]
    assert restore(theirs / "copy", theirs / "new", nothing).files == 1


@pytest.fixture
def cleared(tmp_path: Path) -> Generator[None]:
    """What is as deep as this, nobody else can remove."""
    yield
    file_trees.remove(tmp_path)
    assert not tmp_path.exists()


@pytest.fixture
def small_stack() -> Generator[None]:
    """A stack that less deep folders are too much for: looking at one takes a look at all above it."""
    usual = sys.getrecursionlimit()
    sys.setrecursionlimit(400)
    yield
    sys.setrecursionlimit(usual)


@pytest.mark.usefixtures("cleared", "small_stack")
@pytest.mark.parametrize("name", ["copy", "copy.tar.gz"])
def test_folders_deeper_than_any_stack(data: Path, tmp_path: Path, name: str) -> None:
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


def test_a_path_that_would_be_too_long_is_named(data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def make_folders(folder: Path) -> None:
        if folder.name == "deep":
            raise OSError(errno.ENAMETOOLONG, "File name too long")
        real(folder)

    real = file_copy.make_folders
    monkeypatch.setattr(file_copy, "make_folders", make_folders)
    made = back_up(data, tmp_path / "copy")
    assert made.unread == {"workspaces/ann/deep/run.sh": "its path would be too long in the backup"}


def test_a_full_disk_is_no_reason_to_leave_files_out(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def make_folders(folder: Path) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(file_copy, "make_folders", make_folders)
    with pytest.raises(SetupError, match="No space left"):
        back_up(data, tmp_path / "copy")
    assert names_in(tmp_path) == ["data"]


@pytest.mark.parametrize("name", ["copy", "copy.tar.gz"])
def test_names_that_are_no_text(data: Path, tmp_path: Path, name: str) -> None:
    odd = os.fsdecode(b"workspaces/ann/\xff\n\x1b")
    (data / odd).write_text("odd")
    assert back_up(data, tmp_path / name).files == 3
    restore(tmp_path / name, tmp_path / "new", nothing)
    assert (tmp_path / "new" / odd).read_text() == "odd"


# What changes while it is read


def back_up_after(
    change: Callable[[], object], data: Path, target: Path, monkeypatch: pytest.MonkeyPatch
) -> create.Made:
    """Something happens after the folder was listed and before its files are read."""

    def listed(data: Path, store: Path) -> Content:
        content = content_of(data, store)
        change()
        return content

    monkeypatch.setattr(create, "content_of", listed)
    return back_up(data, target)


def move_away(path: Path) -> Path:
    return path.rename(path.with_name("moved"))


def as_a_file_that_is_gone(path: Path) -> None:
    move_away(path)


def as_a_link(path: Path) -> None:
    """To something that the agent may not see."""
    secret = path.parents[4] / "secret"
    secret.write_text("secret")
    move_away(path)
    path.symlink_to(secret)


def as_a_file_behind_a_link(path: Path) -> None:
    secrets = path.parents[4] / "secrets"
    secrets.mkdir()
    (secrets / path.name).write_text("secret")
    move_away(path.parent)
    path.parent.symlink_to(secrets)


def as_a_pipe(path: Path) -> None:
    move_away(path)
    os.mkfifo(path)


@pytest.mark.parametrize("change", [as_a_file_that_is_gone, as_a_link, as_a_file_behind_a_link, as_a_pipe])
def test_what_is_no_file_any_more_is_silently_left_out(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: Callable[[Path], None]
) -> None:
    script = data / "workspaces" / "ann" / "deep" / "run.sh"
    made = back_up_after(lambda: change(script), data, tmp_path / "copy", monkeypatch)
    assert (made.files, made.unread) == (1, {})
    assert not (tmp_path / "copy" / "workspaces" / "ann" / "deep" / "run.sh").exists()


def test_a_folder_that_vanishes_while_it_is_listed(data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def entries_of(root: Path, name: str) -> tuple[list[str], list[str]]:
        folders, files = real(root, name)
        if name == "workspaces":
            move_away(data / "workspaces" / "ann").rename(tmp_path / "ann")
        return folders, files

    real = file_trees.entries_of
    monkeypatch.setattr("limelight.backups.content.entries_of", entries_of)
    made = back_up(data, tmp_path / "copy")
    assert (made.files, made.unread) == (1, {})


def test_a_file_that_grows_has_an_end(data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script = data / "workspaces" / "ann" / "deep" / "run.sh"

    def read(source: int, size: int) -> bytes:
        if os.path.samestat(os.fstat(source), script.stat()):
            with script.open("a") as file:
                file.write("more")
        return os.read(source, size)

    monkeypatch.setattr(file_copy, "_read", read)
    back_up(data, tmp_path / "copy")
    assert (tmp_path / "copy" / "workspaces" / "ann" / "deep" / "run.sh").read_text() == "echo"


# Databases beside the store


def ruin(path: Path) -> None:
    """Its first bytes too."""
    path.write_bytes(b"\xff" * 5000)


@pytest.mark.parametrize("hurt", [damage, ruin])
@pytest.mark.parametrize("name", ["langgraph.db", "agno.db", "limelight.db.rescued-2"])
def test_a_damaged_database_beside_the_store_is_kept_as_it_is(
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


def test_a_damaged_database_without_its_log_is_left_out(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def open_below(root: Path, name: str) -> int:
        if name == "langgraph.db-wal":
            raise PermissionError(errno.EACCES, "Permission denied")
        return file_trees.open_below(root, name)

    ruin(data / "langgraph.db")
    monkeypatch.setattr(file_copy, "open_below", open_below)
    made = back_up(data, tmp_path / "copy")
    assert (made.unread, made.doubtful) == ({"langgraph.db": "Permission denied"}, {})
    assert not [*(tmp_path / "copy").glob("langgraph*")]


def test_a_locked_database_beside_the_store(data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("limelight.stores.sqlite.database_copy.PATIENCE_SECONDS", 0)
    with closing(sqlite3.connect(data / "agno.db", isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        made = make_backup(data, data / "limelight.db", tmp_path / "copy", at=1, version="1", tell=nothing)
    assert made.doubtful == {"agno.db": "database is locked"}
    assert count(tmp_path / "copy" / "agno.db") == 100
