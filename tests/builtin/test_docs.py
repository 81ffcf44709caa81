"""docs/agents.md against the catalogue."""

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
    assert list(table.items()) == [(agent.name, agent.extra or "–") for agent in BUILT_INS]


def test_every_extra_exists() -> None:
    extras = set(re.findall(r"^(\w+) = \[", PYPROJECT, flags=re.MULTILINE))
    assert {agent.extra for agent in BUILT_INS} - {""} <= extras


def test_default_imports_are_documented() -> None:
    first = sections(DOCUMENT, 2)["codact"].partition(". smolagents")[0]
    assert codes(first) - {"imports"} == set(IMPORTS)


def test_supported_settings_are_documented() -> None:
    text = " ".join(sections(DOCUMENT, 2)["A real model"].split())
    planning = [agent.name for agent in BUILT_INS if "planning_interval" in agent.source_type.OPTIONS]
    assert f"`planning_interval` for {' and '.join(f'`{name}`' for name in planning)}" in text
    assert [agent.name for agent in BUILT_INS if "max_steps" not in agent.source_type.OPTIONS] == ["demo"]
    assert [agent.name for agent in BUILT_INS if "model" not in agent.settings] == ["demo"]
    with_files = [agent.name for agent in BUILT_INS if "workspace" in agent.settings]
    assert f"`workspace` for `{with_files[0]}`, `{with_files[1]}` and `{with_files[2]}`" in text
    assert [agent.name for agent in BUILT_INS if "imports" in agent.settings] == ["codact"]


def test_number_of_pages_is_documented() -> None:
    assert len(pages()) == 11
    assert "a library of eleven short pages" in DOCUMENT
