"""docs/understudy.md against the code: its scripts load, its program runs, its tables are complete."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import typer.main
import yaml

from limelight.cli import app as cli
from limelight.understudy.scripts import ScriptedCall, Step, parse_scripts
from limelight.understudy.trigger_phrases import TRIGGERS
from limelight.understudy.turn_context import TRIGGER_PHRASES
from tests.support.markdown import blocks, codes, rows, sections

TEXT = (Path(__file__).parents[2] / "docs" / "understudy.md").read_text()


def test_scripts_in_the_document_load() -> None:
    examples = blocks(TEXT, "yaml")
    assert len(examples) == 3
    for example in examples:
        assert parse_scripts(example)
    used = {key for example in examples for item in yaml.safe_load(example) for key in item}
    assert used == {"steps", "match", "turns"}


def test_every_step_is_documented() -> None:
    table = rows(sections(TEXT, 2)["Scripts"])
    assert [row[0].strip("`") for row in table] == list(Step.__struct_fields__)
    assert set(ScriptedCall.__struct_fields__) <= codes(TEXT)


def test_every_trigger_phrase_is_documented() -> None:
    table = rows(sections(TEXT, 2)["Improvisation"])
    assert {row[0].strip('"') for row in table} == set(TRIGGER_PHRASES)
    assert {*TRIGGERS, "a long answer"} == set(TRIGGER_PHRASES)


def test_every_option_is_documented() -> None:
    command: Any = typer.main.get_command(cli)
    options = {name for param in command.load("understudy").params for name in param.opts if name.startswith("-")}
    documented = {row[0].strip("`") for row in rows(sections(TEXT, 2)["limelight understudy"])}
    assert documented == options | {"--help"}


def test_program_in_the_document_runs(tmp_path: Path) -> None:
    (code,) = blocks(TEXT, "python")
    path = tmp_path / "program.py"
    path.write_text(code)
    ended = subprocess.run([sys.executable, path], capture_output=True, text=True, timeout=60, check=False)
    assert (ended.stdout, ended.stderr) == ("It will be dry.\n", "")
