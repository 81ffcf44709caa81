"""File tools stay inside the workspace: with `..`, absolute names and links, in each framework."""

import threading
from base64 import b64encode
from collections.abc import Callable, Generator
from contextvars import copy_context
from pathlib import Path
from typing import Any

import pytest

from limelight.builtin import deepagents_backends, file_tools
from limelight.builtin.deepagents_backends import SessionFilesBackend
from limelight.builtin.demo import tools
from limelight.builtin.file_tools import MAX_FILES, FileTools, resolve_path, session_folder
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
    """The workspace of a run, with links that lead out of it."""
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


@pytest.mark.requirement("files-in-workspace")
@pytest.mark.parametrize("name", [*WAYS_OUT, "{outside}"])
def test_file_tools_stay_inside_the_workspace(folder: Path, name: str) -> None:
    name = name.format(outside=folder.parent / "secret.txt")
    files = FileTools(sample_files=False)
    calls = (lambda: files.read_file(name), lambda: files.write_file(name, "x"), lambda: files.delete_file(name))
    for call in calls:
        try:
            call()
        except OSError as error:
            assert SECRET not in str(error)
        else:  # an absolute name is a file of the workspace
            assert name.startswith("/")
    assert (folder.parent / "secret.txt").read_text() == SECRET


@pytest.mark.requirement("files-in-workspace")
@pytest.mark.parametrize("name", [*WAYS_OUT, "{outside}"])
def test_deepagents_tools_stay_inside_the_workspace(folder: Path, name: str) -> None:
    name = name.format(outside=folder.parent / "secret.txt")
    files: Any = SessionFilesBackend(sample_files=False)
    parent = str(Path(name).parent)
    results = [files.read(name), files.edit(name, "secret", "x"), files.write(name, "x"), files.ls(parent)]
    results += [files.grep("secret", path=parent), files.glob("**/*", path="/"), files.grep("secret")]
    assert SECRET not in str(results)
    assert str(folder) not in str(results)
    assert name.startswith(str(folder.parent)) or "secret.txt" not in str(files.glob("**/*.txt", path="/"))
    assert (folder.parent / "secret.txt").read_text() == SECRET


def test_deepagents_tools_use_the_workspace_of_the_run(folder: Path) -> None:
    files: Any = SessionFilesBackend(sample_files=False)
    assert "a note" in str(files.read("/note.txt"))
    assert files.write("/deep/er.txt", "x").error is None
    assert (folder / "deep" / "er.txt").read_text() == "x"
    other = folder.parent / "other"
    other.mkdir()
    context = FakeContext()
    context.workspace = other
    CURRENT.set(context)
    assert "note.txt" not in str(files.ls("/"))


def test_file_tools_list_read_write_and_delete(folder: Path) -> None:
    files = FileTools(sample_files=False)
    assert files.write_file("/sub/new.txt", "ä") == "wrote 2 bytes to /sub/new.txt"
    assert files.list_files() == ["note.txt", "sub/new.txt"], "a link is not listed"
    assert files.read_file("sub/new.txt") == "ä"
    with pytest.raises(FileNotFoundError, match=r"there is no file nothing\.md"):
        files.read_file("nothing.md")
    assert files.delete_file("sub/new.txt") == "deleted sub/new.txt"
    assert files.list_files() == ["note.txt"]
    with pytest.raises(FileNotFoundError, match=r"there is no file sub"):
        files.delete_file("sub")


def test_long_listing_is_cut_with_a_note(folder: Path) -> None:
    deep = folder / "many"
    deep.mkdir()
    for number in range(MAX_FILES - 1):
        (deep / f"{number:04}.txt").touch()
    listed = FileTools(sample_files=False).list_files()
    assert len(listed) == MAX_FILES
    assert listed[-2:] == [f"many/{MAX_FILES - 2:04}.txt", "note.txt"]
    (deep / "one-more.txt").touch()
    cut = FileTools(sample_files=False).list_files()
    assert cut[:-1] == listed
    assert cut[-1] == f"… cut here: there are more than {MAX_FILES} files"


def test_demo_listing_and_search_have_the_same_limit(tmp_path: Path) -> None:
    for number in range(tools.MAX_FILES):
        (tmp_path / f"{number:04}.txt").touch()
    assert len(tools.list_files(tmp_path)) == tools.MAX_FILES
    (tmp_path / "zz.txt").write_text("bees")
    assert tools.list_files(tmp_path)[-1] == {"cut": "1 more files are not listed"}
    assert tools.search(tmp_path, ["bees"]) == []


def test_demo_reads_binary_files_up_to_the_limit(tmp_path: Path) -> None:
    (tmp_path / "odd.bin").write_bytes(b"\xff" + b"x" * (2 * tools.MAX_BYTES))
    assert len(tools.read_file(tmp_path, "odd.bin")) == tools.MAX_BYTES


@pytest.mark.parametrize(
    "look", [lambda: FileTools(sample_files=True).list_files(), lambda: SessionFilesBackend(sample_files=True).ls("/")]
)
def test_empty_workspace_gets_the_sample_files_once(folder: Path, look: Callable[[], Any]) -> None:
    empty = folder.parent / "empty"
    empty.mkdir()
    context = FakeContext()
    context.workspace = empty
    CURRENT.set(context)
    assert session_folder(sample_files=False) == empty
    assert list(empty.iterdir()) == []
    assert "bees.md" in str(look())
    (empty / "bees.md").unlink()
    assert "bees.md" not in str(look()), "a removed sample file is not copied again"


def test_parallel_tools_see_all_sample_files(folder: Path) -> None:
    context = FakeContext()
    found: list[list[str]] = []
    for number in range(20):
        context.workspace = folder.parent / f"new-{number}"
        context.workspace.mkdir()
        CURRENT.set(context)
        threads = [
            threading.Thread(
                target=copy_context().run, args=(lambda: found.append(FileTools(sample_files=True).list_files()),)
            )
            for _ in range(4)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert found == [["bees.md", "lighthouses.md", "limelight.md", "rivers.csv"]] * 80


def test_session_folder_outside_of_a_run_is_an_error() -> None:
    with pytest.raises(RuntimeError, match="only while an agent of Limelight runs"):
        session_folder(sample_files=False)


def test_absolute_and_relative_names_are_the_same_file(folder: Path) -> None:
    assert (
        resolve_path(folder, "/note.txt")
        == resolve_path(folder, "note.txt")
        == resolve_path(folder, " ./note.txt")
        == folder / "note.txt"
    )


@pytest.mark.requirement("files-in-workspace")
def test_demo_tools_follow_no_link(folder: Path) -> None:
    """Code of another agent can have made links in the workspace of the session."""
    outside = folder.parent / "secret.txt"
    (folder / "report.md").symlink_to(outside)
    assert tools.list_files(folder) == [{"name": "note.txt", "bytes": 6}]
    assert tools.search(folder, ["secret"]) == []
    for name in ("link.txt", "report.md"):
        with pytest.raises(PermissionError):
            tools.read_file(folder, name)
        with pytest.raises(OSError):
            tools.write_file(folder, name, "overwritten")
    assert outside.read_text() == SECRET


DEEP_CALLS: dict[str, Callable[[Any], Any]] = {
    "read": lambda files: files.read("/d/secret.txt"),
    "write": lambda files: files.write("/d/secret.txt", "overwritten"),
    "write of a new file": lambda files: files.write("/d/planted.txt", "planted"),
    "write into a new folder": lambda files: files.write("/d/planted/x.txt", "planted"),
    "edit": lambda files: files.edit("/d/secret.txt", "secret", "overwritten"),
    "ls": lambda files: files.ls("/d"),
    "glob": lambda files: files.glob("**/*.txt", path="/d"),
    "grep": lambda files: files.grep("secret", path="/d"),
    "grep in a file": lambda files: files.grep("secret", path="/d/secret.txt"),
    "delete": lambda files: files.delete("/d/secret.txt"),
    "delete of a folder": lambda files: files.delete("/d/folder"),
    "upload": lambda files: files.upload_files([("/d/secret.txt", b"overwritten")]),
    "download": lambda files: files.download_files(["/d/secret.txt"]),
}
AGNO_CALLS: dict[str, Callable[[FileTools], Any]] = {
    "read": lambda files: files.read_file("d/secret.txt"),
    "write": lambda files: files.write_file("d/secret.txt", "overwritten"),
    "write of a new file": lambda files: files.write_file("d/planted.txt", "planted"),
    "delete": lambda files: files.delete_file("d/secret.txt"),
}


@pytest.fixture
def swapped(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder outside, for which the folder `d` of the workspace is swapped as soon as a path has been checked."""
    outside = folder.parent / "outside"
    for place in (outside, folder / "d"):
        (place / "folder").mkdir(parents=True)
        (place / "folder" / "inner.txt").write_text("inner")
    (outside / "secret.txt").write_text(SECRET)
    (folder / "d" / "secret.txt").write_text("mine")
    real = file_tools.resolve_path

    def resolve_and_swap(root: Path, name: str) -> Path:
        path = real(root, name)
        if (folder / "d").is_symlink():
            return path
        (folder / "d").rename(folder.parent / "moved")
        (folder / "d").symlink_to(outside)
        return path

    monkeypatch.setattr(file_tools, "resolve_path", resolve_and_swap)
    monkeypatch.setattr(deepagents_backends, "resolve_path", resolve_and_swap)
    return outside


def content_of(folder: Path) -> dict[str, str]:
    return {str(path.relative_to(folder)): path.read_text() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.requirement("files-in-workspace")
@pytest.mark.parametrize("call", DEEP_CALLS)
def test_deepagents_tools_do_not_follow_a_folder_that_became_a_link(swapped: Path, call: str) -> None:
    before = content_of(swapped)
    found = DEEP_CALLS[call](SessionFilesBackend(sample_files=False))
    assert SECRET not in str(found) and b64encode(SECRET.encode()).decode() not in str(found)
    assert "secret.txt" not in str(getattr(found, "entries", "")) + str(getattr(found, "matches", ""))
    assert content_of(swapped) == before
    assert str(swapped.parent) not in str(found)


@pytest.mark.requirement("files-in-workspace")
@pytest.mark.parametrize("call", AGNO_CALLS)
def test_file_tools_do_not_follow_a_folder_that_became_a_link(swapped: Path, call: str) -> None:
    before = content_of(swapped)
    with pytest.raises(OSError) as refused:
        AGNO_CALLS[call](FileTools(sample_files=False))
    assert SECRET not in str(refused.value)
    assert content_of(swapped) == before


@pytest.mark.requirement("file-size-limit")
def test_deepagents_tools_do_not_read_files_that_are_too_large(folder: Path) -> None:
    files = SessionFilesBackend(sample_files=False)
    for name in ("big.txt", "big.png"):
        with (folder / name).open("wb") as file:
            file.truncate(1 << 40)  # a sparse file, which needs no space
    for name in ("/big.txt", "/big.png"):
        error = files.read(name).error or ""
        assert "the file is larger than" in error and "which is the limit" in error
    assert "the file is larger than" in (files.edit("/big.txt", "a", "b").error or "")
    assert files.download_files(["/big.txt"])[0].error is not None
    assert files.grep("x").matches == []


def test_deepagents_tools_search_edit_and_delete(folder: Path) -> None:
    files = SessionFilesBackend(sample_files=False)
    assert files.write("/a/b/bees.md", "one bee\r\ntwo bees\n").error is None
    (folder / "image.png").write_bytes(b"\x89PNG")
    assert files.grep("bees").matches == [{"path": "/a/b/bees.md", "line": 2, "text": "two bees"}]
    assert files.grep("bee", path="/a", glob="*.txt").matches == []
    assert files.grep("bee", path="/a/b/bees.md", max_count=1).truncated
    assert [found["path"] for found in files.glob("*.md").matches or ()] == ["/a/b/bees.md"]
    assert [found["path"] for found in files.glob("b/*", path="/a").matches or ()] == ["/a/b/bees.md"]
    assert [found["path"] for found in files.ls("/").entries or ()] == ["/a/", "/image.png", "/note.txt"]
    assert (files.ls("/nowhere").error, files.ls("/note.txt").error) == (
        "Path '/nowhere': path_not_found",
        "Path '/note.txt': not_a_directory",
    )
    assert files.edit("/a/b/bees.md", "bee\n", "wasp\n").occurrences == 1
    assert (folder / "a/b/bees.md").read_text() == "one wasp\ntwo bees\n"
    assert files.edit("/a/none.md", "a", "b").error == "Error: File '/a/none.md' not found"
    assert files.read("/a").error == "File '/a' not found"
    assert str(files.read("/image.png").file_data) == "{'content': 'iVBORw==', 'encoding': 'base64'}"
    assert files.delete("/a").error is None
    assert not (folder / "a").exists()
    assert files.delete("/a").error == "Error: '/a' not found"
    assert "the workspace itself" in (files.delete("/").error or "")
    assert folder.exists()
