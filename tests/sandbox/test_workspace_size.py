"""The size of a workspace is measured, and code that makes it too large is ended."""

import math
import os
import subprocess
from pathlib import Path

import pytest

from limelight.sandbox.launch import Launch
from limelight.sandbox.policy import MB, Level, Limits
from limelight.sandbox.process import WorkerLost
from limelight.sandbox.sandbox import Sandbox
from limelight.sandbox.workspace_size import ENTRY_BYTES, MAX_DEPTH, WorkspaceWatch, used_bytes
from tests.sandbox.attacker import Attacker
from tests.support.wait import DEADLINE, wait_for


def test_size_is_that_of_all_files_and_follows_no_link(tmp_path: Path) -> None:
    outside, folder = tmp_path / "outside", tmp_path / "workspace"
    for each in (outside, folder / "inner"):
        each.mkdir(parents=True)
        (each / "data").write_bytes(os.urandom(MB))
    (folder / "link").symlink_to(outside)
    (folder / "empty").touch()
    assert MB + 3 * ENTRY_BYTES <= used_bytes(folder) < 2 * MB


def test_measurement_ends_when_enough_is_found(tmp_path: Path) -> None:
    for number in range(4):
        (tmp_path / f"{number}").mkdir()
        (tmp_path / f"{number}" / "inner").mkdir()
    assert used_bytes(tmp_path) == 8 * ENTRY_BYTES
    assert used_bytes(tmp_path, 1) == 4 * ENTRY_BYTES


def test_deep_folders_count_as_too_large(tmp_path: Path) -> None:
    folder = tmp_path
    for _ in range(MAX_DEPTH):
        folder /= "f"
        folder.mkdir()
    assert used_bytes(tmp_path) == MAX_DEPTH * ENTRY_BYTES
    (folder / "f" / "f").mkdir(parents=True)
    assert used_bytes(tmp_path) == math.inf


def test_removed_folder_has_no_size(tmp_path: Path) -> None:
    assert used_bytes(tmp_path / "removed") == 0


@pytest.mark.parametrize(("size", "may_run"), [(0, True), (3 * MB // 2, True), (3 * MB, False)])
def test_full_workspace_may_be_used_as_long_as_it_does_not_grow(size: int, may_run: bool, tmp_path: Path) -> None:
    (tmp_path / "data").write_bytes(os.urandom(size))
    watch = WorkspaceWatch(str(tmp_path), MB)
    watch.start()
    if may_run:
        (tmp_path / "more").write_bytes(os.urandom(2 * MB))
    wait_for("the measurement", lambda: watch.excess)
    assert watch.excess == "more than 1 MB in the workspace"


def sandbox(level: Level) -> Sandbox:
    return Sandbox(choice=level, limits=Limits(workspace_bytes=2 * MB))


def run(launch: Launch) -> tuple[int, str]:
    """Run a command until it ends. Its input stays open, because the runner ends it otherwise."""
    read_end, write_end = os.pipe()
    try:
        ended = subprocess.run(
            launch.argv, env=launch.env, cwd="/", stdin=read_end, capture_output=True, timeout=DEADLINE, check=False
        )
    finally:
        os.close(read_end)
        os.close(write_end)
    return ended.returncode, (ended.stdout + ended.stderr).decode()


@pytest.mark.requirement("sandbox-limits")
def test_command_that_fills_the_workspace_is_killed_and_a_later_one_can_delete_files(
    level: Level, tmp_path: Path
) -> None:
    fill = sandbox(level).command(tmp_path, "head -c 3000000 /dev/zero > data; sleep 600")
    assert run(fill) == (137, "\n(killed: more than 2 MB in the workspace)\n")
    assert run(sandbox(level).command(tmp_path, "rm data && echo deleted")) == (0, "deleted\n")


@pytest.mark.requirement("sandbox-limits")
def test_python_code_that_fills_the_workspace_is_killed(level: Level, tmp_path: Path) -> None:
    attacker = Attacker(sandbox(level), tmp_path)
    with pytest.raises(WorkerLost, match="more than 2 MB in the workspace"):
        attacker.attack("open('data', 'wb').write(bytes(3 * 1024**2)); time.sleep(600)")


@pytest.mark.requirement("sandbox-limits")
def test_command_without_a_limit_of_the_workspace_is_not_measured(level: Level, tmp_path: Path) -> None:
    shared = Sandbox(choice=level).command(tmp_path, "head -c 3000000 /dev/zero > data; wc -c data")
    assert run(shared) == (0, "3000000 data\n")
