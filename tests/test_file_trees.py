"""Removing a folder: it follows no link, needs no recursion, and ends also if a process fills the folder again."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from limelight.file_trees import open_inside, remove_tree


@pytest.mark.requirement("workspace-removal")
@pytest.mark.parametrize("moment", range(12))
def test_removal_does_not_follow_a_folder_that_became_a_link(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, moment: int
) -> None:
    outside, folder = tmp_path / "outside", tmp_path / "workspace"
    for place in (outside, folder / "a", folder / "b"):
        (place / "inner").mkdir(parents=True)
        (place / "inner" / "file").write_text("of others")
        (place / "file").write_text("of others")
    calls = 0

    def swapping(real: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **options: Any) -> Any:
            nonlocal calls
            calls += 1
            if calls == moment + 1:
                for name in ("a", "b"):
                    if (folder / name).is_dir():
                        (folder / name).rename(tmp_path / f"moved-{name}")
                    if folder.exists():
                        (folder / name).symlink_to(outside)
            return real(*args, **options)

        return call

    with monkeypatch.context() as patched:
        for name in ("open", "unlink", "rmdir"):
            patched.setattr(os, name, swapping(getattr(os, name)))
        remove_tree(folder)
    assert {path.relative_to(outside).as_posix() for path in outside.rglob("*")} == {"inner", "inner/file", "file"}


def test_removal_of_deep_folders_read_only_folders_links_and_files(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    descriptor = os.open(folder, os.O_RDONLY)
    for number in range(3000):
        os.mkdir("deep", dir_fd=descriptor)
        if number % 1000 == 0:
            os.close(os.open("file", os.O_CREAT | os.O_WRONLY, dir_fd=descriptor))
        inner = os.open("deep", os.O_RDONLY, dir_fd=descriptor)
        os.close(descriptor)
        descriptor = inner
    os.close(descriptor)
    (folder / "read-only").mkdir()
    (folder / "read-only" / "file").touch()
    (folder / "read-only").chmod(0o500)
    (tmp_path / "target").mkdir()
    (folder / "link").symlink_to(tmp_path / "target")
    remove_tree(folder)
    (tmp_path / "file").touch()
    remove_tree(tmp_path / "file")
    (tmp_path / "link").symlink_to(tmp_path / "target")
    remove_tree(tmp_path / "link")
    remove_tree(tmp_path / "nothing")
    assert [path.name for path in tmp_path.iterdir()] == ["target"]


def test_removal_of_a_folder_that_is_filled_again_ends_in_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "folder"
    (folder / "inner").mkdir(parents=True)
    real, calls = os.rmdir, 0

    def rmdir(path: Any, *, dir_fd: int | None = None) -> None:
        nonlocal calls
        calls += 1
        real(path, dir_fd=dir_fd)
        if path == "inner":
            os.mkdir(path, dir_fd=dir_fd)

    with monkeypatch.context() as patched:
        patched.setattr(os, "rmdir", rmdir)
        remove_tree(folder, seconds=0.05)
    assert calls > 1
    assert folder.exists()


def test_path_inside_a_folder_has_no_dots_and_no_links(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "link").symlink_to(tmp_path)
    for name in ("..", "../folder", "link", "link/folder"):
        with pytest.raises(OSError):
            open_inside(tmp_path / "folder", name)
