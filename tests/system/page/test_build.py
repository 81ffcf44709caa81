"""How the page gets built: into wheels too, from a lock that every kind of machine can use, and only when needed."""

import json
import os
import shutil
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import pytest

from tools.complete_package_lock import LOCK, completed

ROOT = Path(__file__).parents[3]


def test_lock_file_has_the_packages_of_all_platforms() -> None:
    lock = json.loads(LOCK.read_text(encoding="utf-8"))
    assert completed(lock)["packages"].keys() == lock["packages"].keys(), "run `make lock`"


def test_lock_file_names_no_registry() -> None:
    assert '"resolved"' not in LOCK.read_text(encoding="utf-8")


def test_missing_optional_package_is_added_for_its_platform() -> None:
    tool = {"version": "1.2.0", "dev": True, "optionalDependencies": {"@a/cli-linux-arm64-musl": "1.2.0"}}
    packages = completed({"packages": {"": {}, "node_modules/@a/tool": tool}})["packages"]
    machine = {"cpu": ["arm64"], "libc": ["musl"], "os": ["linux"]}
    expected = {"version": "1.2.0", **machine, "dev": True, "optional": True}
    assert packages["node_modules/@a/cli-linux-arm64-musl"] == expected


def test_packages_contain_the_page_although_git_ignores_it() -> None:
    build: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["hatch"]["build"]
    assert build["artifacts"] == ["src/limelight/page/**"]
    assert (ROOT / build["hooks"]["custom"]["path"]).is_file()


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """Just what the script looks at, with a node and an npm that only note that they were called."""
    shutil.copytree(ROOT / "tools", tmp_path / "tools")
    (tmp_path / "web" / "src").mkdir(parents=True)
    (tmp_path / "web" / "src" / "main.ts").write_text("1")
    (tmp_path / "src" / "limelight").mkdir(parents=True)
    (tmp_path / "bin").mkdir()
    npm = 'echo "$@" >>"$CALLS"; mkdir -p node_modules/.page; echo page >node_modules/.page/index.html'
    for name, script in (("node", "exit 0"), ("npm", npm)):
        (tmp_path / "bin" / name).write_text(f"#!/bin/sh\n{script}\n")
        (tmp_path / "bin" / name).chmod(0o755)
    return tmp_path


def build(clone: Path, **environment: str) -> "subprocess.CompletedProcess[str]":
    path = f"{clone / 'bin'}:{os.environ['PATH']}"
    full = {**os.environ, "PATH": path, "CALLS": str(clone / "calls"), **environment}
    return subprocess.run([clone / "tools" / "build_page.sh"], env=full, capture_output=True, text=True, check=False)


def calls(clone: Path) -> int:
    return len((clone / "calls").read_text().splitlines())


def test_page_is_built_only_if_a_source_has_changed(clone: Path) -> None:
    assert "Building the page" in build(clone).stdout
    assert build(clone).stdout == ""
    (clone / "web" / "src" / "main.test.ts").write_text("tests have no part in it")
    assert build(clone).stdout == ""
    assert calls(clone) == 1
    (clone / "web" / "src" / "main.ts").write_text("2")
    assert build(clone).returncode == 0
    assert calls(clone) == 2


def test_finished_build_needs_no_node(clone: Path) -> None:
    build(clone)
    (clone / "bin" / "npm").write_text("#!/bin/sh\nexit 9\n")
    assert build(clone).returncode == 0


def test_failed_build_leaves_the_page_unchanged(clone: Path) -> None:
    build(clone)
    (clone / "web" / "src" / "main.ts").write_text("2")
    (clone / "bin" / "npm").write_text("#!/bin/sh\nexit 9\n")
    failed = build(clone)
    assert failed.returncode == 2
    assert "the page could not be built" in failed.stderr
    assert (clone / "src" / "limelight" / "page" / "index.html").read_text() == "page\n"


def test_old_node_is_not_used(clone: Path) -> None:
    """The wheel from PyPI is, which cannot be had here: the error says what helps."""
    (clone / "bin" / "node").write_text("#!/bin/sh\nexit 1\n")
    failed = build(clone, PYTHON="false", LIMELIGHT_CACHE=str(clone / "cache"))
    assert failed.returncode == 2
    assert "Fetching Node" in failed.stderr
    assert "install Node 20.19 or newer" in failed.stderr
