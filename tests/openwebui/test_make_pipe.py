"""`tools/make_pipe.py`: the one file contains all parts, in a valid order, without name conflicts."""

import ast
from pathlib import Path

import pytest

from limelight import __version__
from tests.openwebui.function_rules import FILE
from tools import make_pipe


@pytest.fixture
def parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder of parts."""
    monkeypatch.setattr(make_pipe, "FOLDER", tmp_path)
    folder = tmp_path / "parts"
    folder.mkdir()
    return folder


def test_committed_file_is_generated_from_current_parts() -> None:
    assert make_pipe.bundle(__version__) == FILE.read_text(encoding="utf-8"), "run `make pipe`"


def test_bundle_has_parts_in_order_below_one_import_block(parts: Path) -> None:
    (parts / "above.py").write_text(
        '"""A."""\n\nimport json\n\nfrom openwebui.parts.below import B\n\n\nclass A(B): ...\n'
    )
    (parts / "below.py").write_text('"""B."""\n\nimport json\n\n\nclass B:\n    json = json\n')
    text = make_pipe.bundle("1", ("below", "above"))
    assert "#   below             B.\n#   above             A.\n" in text
    assert text.index("import json") < text.index("class B") < text.index("class A(B)")
    assert "openwebui.parts" not in text
    assert text.count("import json") == 1


@pytest.mark.parametrize("other", ["def LIMIT() -> None: ...", "class LIMIT: ...", "LIMIT = 2", "LIMIT: int = 2"])
def test_bundle_with_a_name_in_two_parts_is_refused(parts: Path, other: str) -> None:
    (parts / "one.py").write_text('"""1."""\n\nLIMIT = 1\n')
    (parts / "two.py").write_text(f'"""2."""\n\n\n{other}\n')
    with pytest.raises(SystemExit, match=r"LIMIT is defined in both one\.py and two\.py"):
        make_pipe.bundle("1", ("one", "two"))


def test_bundle_with_an_import_of_a_later_part_is_refused(parts: Path) -> None:
    (parts / "hen.py").write_text('"""Hen."""\n\nfrom openwebui.parts.egg import Egg\n\n\nclass Hen: ...\n')
    (parts / "egg.py").write_text('"""Egg."""\n\n\nclass Egg: ...\n')
    with pytest.raises(SystemExit, match=r"hen\.py imports parts that come after it in PARTS: \['egg'\]"):
        make_pipe.bundle("1", ("hen", "egg"))


def test_bundle_with_an_unlisted_or_missing_part_is_refused(parts: Path) -> None:
    (parts / "egg.py").write_text('"""Egg."""\n\n\nclass Egg: ...\n')
    with pytest.raises(SystemExit, match=r"differ: \['egg', 'hen'\]"):
        make_pipe.bundle("1", ("hen",))


@pytest.mark.parametrize(
    "part",
    ["run_state", "output_items", "native_display", "collapse_display", "details_display", "status_line", "citations"],
)
def test_part_of_a_display_imports_no_network_event_loop_or_clock(part: str) -> None:
    tree = ast.parse((make_pipe.FOLDER / "parts" / f"{part}.py").read_text(encoding="utf-8"))
    imported = {alias.name for node in tree.body if isinstance(node, ast.Import) for alias in node.names}
    imported |= {(node.module or "").rpartition(".")[2] for node in tree.body if isinstance(node, ast.ImportFrom)}
    assert not imported & {"asyncio", "httpx", "run_stream", "server_client", "time"}
