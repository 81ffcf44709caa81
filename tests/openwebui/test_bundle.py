"""How the one file is made: all parts in it, in an order that works, and no two of them in each other's way."""

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


def test_the_file_is_made_from_the_parts_as_they_are() -> None:
    assert make_pipe.bundle(__version__) == FILE.read_text(encoding="utf-8"), "run `make pipe`"


def test_parts_come_behind_what_they_need(parts: Path) -> None:
    (parts / "above.py").write_text('"""A."""\n\nfrom openwebui.parts.below import B\n\n\nclass A(B): ...\n')
    (parts / "below.py").write_text('"""B."""\n\nimport json\n\n\nclass B:\n    json = json\n')
    text = make_pipe.bundle("1")
    assert text.index("class B") < text.index("class A(B)")
    assert "openwebui.parts" not in text
    assert text.count("import json") == 1


@pytest.mark.parametrize("other", ["def LIMIT() -> None: ...", "class LIMIT: ...", "LIMIT = 2", "LIMIT: int = 2"])
def test_one_name_for_two_things_is_refused(parts: Path, other: str) -> None:
    (parts / "one.py").write_text('"""1."""\n\nLIMIT = 1\n')
    (parts / "two.py").write_text(f'"""2."""\n\n\n{other}\n')
    with pytest.raises(SystemExit, match=r"LIMIT is defined in both one\.py and two\.py"):
        make_pipe.bundle("1")


def test_a_circle_is_refused(parts: Path) -> None:
    (parts / "hen.py").write_text('"""Hen."""\n\nfrom openwebui.parts.egg import Egg\n\n\nclass Hen: ...\n')
    (parts / "egg.py").write_text('"""Egg."""\n\nfrom openwebui.parts.hen import Hen\n\n\nclass Egg: ...\n')
    with pytest.raises(SystemExit, match=r"in a circle: \['egg', 'hen'\]"):
        make_pipe.bundle("1")
