"""Nobody leaves the workspace: not by `..`, not by absolute names, not by links; with the tools of either framework."""

import threading
from collections.abc import Callable, Generator
from contextvars import copy_context
from pathlib import Path
from typing import Any

import pytest

from limelight.builtin.deep_files import SessionFiles
from limelight.builtin.demo import tools
from limelight.builtin.file_tools import MOST_FILES, Files, inside, session_folder
from limelight.sources.base import CURRENT
from tests.sources.fake_turn import FakeContext

SECRET = "the secret outside"
WAYS_OUT = [
    "../secret.txt",
    "/../secret.txt",
    "a/../../secret.txt",
    "link.txt",
    "linked/secret.txt",
    "/linked/secret.txt",
]


@pytest.fixture
def folder(tmp_path: Path) -> Generator[Path]:
    """A session's folder with links that lead out of it, and a run that has it."""
    (tmp_path / "secret.txt").write_text(SECRET)
    folder = tmp_path / "workspace"
    folder.mkdir()
    (folder / "note.txt").write_text("a note")
    (folder / "link.txt").symlink_to(tmp_path / "secret.txt")
    (folder / "linked").symlink_to(tmp_path)
    context = FakeContext()
    context.workspace = folder
    token = CURRENT.set(context)
    yield folder
    CURRENT.reset(token)


@pytest.mark.parametrize("name", [*WAYS_OUT, "{outside}"])
def test_our_own_functions_stay_inside(folder: Path, name: str) -> None:
    name = name.format(outside=folder.parent / "secret.txt")
    files = Files(samples=False)
    uses = (lambda: files.read_file(name), lambda: files.write_file(name, "x"), lambda: files.delete_file(name))
    for use in uses:
        try:
            use()
        except OSError as error:
            assert SECRET not in str(error)
        else:  # an absolute name is one of the folder
            assert name.startswith("/")
    assert (folder.parent / "secret.txt").read_text() == SECRET


@pytest.mark.parametrize("name", [*WAYS_OUT, "{outside}"])
def test_the_tools_of_deepagents_stay_inside(folder: Path, name: str) -> None:
    name = name.format(outside=folder.parent / "secret.txt")
    files: Any = SessionFiles(samples=False)
    parent = str(Path(name).parent)
    said = [files.read(name), files.edit(name, "secret", "x"), files.write(name, "x"), files.ls(parent)]
    said += [files.grep("secret", path=parent), files.glob("**/*", path="/"), files.grep("secret")]
    assert SECRET not in str(said)
    assert str(folder) not in str(said)
    assert name.startswith(str(folder.parent)) or "secret.txt" not in str(files.glob("**/*.txt", path="/"))
    assert (folder.parent / "secret.txt").read_text() == SECRET


def test_deepagents_work_on_the_folder_of_the_run(folder: Path) -> None:
    files: Any = SessionFiles(samples=False)
    assert "a note" in str(files.read("/note.txt"))
    assert files.write("/deep/er.txt", "x").error is None
    assert (folder / "deep" / "er.txt").read_text() == "x"
    other = folder.parent / "other"
    other.mkdir()
    context = FakeContext()
    context.workspace = other
    CURRENT.set(context)
    assert "note.txt" not in str(files.ls("/"))


def test_files_are_listed_read_and_written(folder: Path) -> None:
    files = Files(samples=False)
    assert files.write_file("/sub/new.txt", "ä") == "wrote 2 bytes to /sub/new.txt"
    assert files.list_files() == ["link.txt", "note.txt", "sub/new.txt"]
    assert files.read_file("sub/new.txt") == "ä"
    with pytest.raises(FileNotFoundError, match=r"there is no file nothing\.md"):
        files.read_file("nothing.md")
    assert files.delete_file("sub/new.txt") == "deleted sub/new.txt"
    assert files.list_files() == ["link.txt", "note.txt"]
    with pytest.raises(FileNotFoundError, match=r"there is no file sub"):
        files.delete_file("sub")


def test_of_very_many_files_the_first_are_listed_and_that_there_are_more(folder: Path) -> None:
    deep = folder / "many"
    deep.mkdir()
    for number in range(MOST_FILES - 2):
        (deep / f"{number:04}.txt").touch()
    listed = Files(samples=False).list_files()
    assert len(listed) == MOST_FILES
    assert listed[-2:] == [f"many/{MOST_FILES - 3:04}.txt", "note.txt"]
    (deep / "one-more.txt").touch()
    cut = Files(samples=False).list_files()
    assert cut[:-1] == listed
    assert cut[-1] == f"… cut here: there are more than {MOST_FILES} files"


def test_the_demo_lists_and_searches_so_many_too(tmp_path: Path) -> None:
    for number in range(tools.MOST_FILES):
        (tmp_path / f"{number:04}.txt").touch()
    assert len(tools.list_files(tmp_path)) == tools.MOST_FILES
    (tmp_path / "zz.txt").write_text("bees")
    assert tools.list_files(tmp_path)[-1] == {"cut": "1 more files are not listed"}
    assert tools.search(tmp_path, ["bees"]) == []


def test_the_demo_reads_what_is_no_text_and_what_is_too_large(tmp_path: Path) -> None:
    (tmp_path / "odd.bin").write_bytes(b"\xff" + b"x" * (2 * tools.MOST_BYTES))
    assert len(tools.read_file(tmp_path, "odd.bin")) == tools.MOST_BYTES


@pytest.mark.parametrize("look", [lambda: Files(samples=True).list_files(), lambda: SessionFiles(samples=True).ls("/")])
def test_an_empty_folder_gets_the_samples(folder: Path, look: Callable[[], Any]) -> None:
    empty = folder.parent / "empty"
    empty.mkdir()
    context = FakeContext()
    context.workspace = empty
    CURRENT.set(context)
    assert session_folder(samples=False) == empty
    assert list(empty.iterdir()) == []
    assert "bees.md" in str(look())
    (empty / "bees.md").unlink()
    assert "bees.md" not in str(look()), "what somebody removes stays away"


def test_tools_that_run_side_by_side_all_see_all_the_samples(folder: Path) -> None:
    context = FakeContext()
    found: list[list[str]] = []
    for number in range(20):
        context.workspace = folder.parent / f"new-{number}"
        context.workspace.mkdir()
        CURRENT.set(context)
        looking = [
            threading.Thread(target=copy_context().run, args=(lambda: found.append(Files(samples=True).list_files()),))
            for _ in range(4)
        ]
        for thread in looking:
            thread.start()
        for thread in looking:
            thread.join()
    assert found == [["bees.md", "lighthouses.md", "limelight.md", "rivers.csv"]] * 80


def test_outside_of_a_run_there_are_no_files() -> None:
    with pytest.raises(RuntimeError, match="only while an agent of Limelight runs"):
        session_folder(samples=False)


def test_names_are_virtual(folder: Path) -> None:
    assert (
        inside(folder, "/note.txt")
        == inside(folder, "note.txt")
        == inside(folder, " ./note.txt")
        == folder / "note.txt"
    )
