"""docs/agents.md against the catalogue, in both directions."""

import re
from pathlib import Path

from limelight.builtin.agent_config import IMPORTS
from limelight.builtin.catalogue import BUILT_INS
from limelight.builtin.sample_corpus import pages
from tests.support.markdown import codes, rows, sections

DOCUMENT = (Path(__file__).parents[2] / "docs" / "agents.md").read_text()
PYPROJECT = (Path(__file__).parents[2] / "pyproject.toml").read_text()


def test_every_agent_is_in_the_table_with_its_extra() -> None:
    table = {row[0].strip("`"): row[2].strip("`") for row in rows(DOCUMENT.partition("\n## ")[0])}
    assert list(table.items()) == [(one.name, one.extra or "–") for one in BUILT_INS]


def test_every_extra_exists() -> None:
    extras = set(re.findall(r"^(\w+) = \[", PYPROJECT, flags=re.MULTILINE))
    assert {one.extra for one in BUILT_INS} - {""} <= extras


def test_the_imports_are_stated() -> None:
    first = sections(DOCUMENT, 2)["codact"].partition(". smolagents")[0]
    assert codes(first) - {"imports"} == set(IMPORTS)


def test_which_setting_works_where_is_stated() -> None:
    stated = " ".join(sections(DOCUMENT, 2)["A real model"].split())
    planning = [one.name for one in BUILT_INS if "planning_interval" in one.kind.OPTIONS]
    assert f"`planning_interval` for {' and '.join(f'`{name}`' for name in planning)}" in stated
    assert [one.name for one in BUILT_INS if "max_steps" not in one.kind.OPTIONS] == ["demo"]
    assert [one.name for one in BUILT_INS if "model" not in one.honours] == ["demo"]
    filing = [one.name for one in BUILT_INS if "workspace" in one.honours]
    assert f"`workspace` for `{filing[0]}`, `{filing[1]}` and `{filing[2]}`" in stated
    assert [one.name for one in BUILT_INS if "imports" in one.honours] == ["codact"]


def test_the_number_of_pages_is_stated() -> None:
    assert len(pages()) == 11
    assert "a library of eleven short pages" in DOCUMENT
