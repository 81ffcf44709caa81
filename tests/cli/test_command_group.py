"""The list of commands, which is shown without importing any command."""

import subprocess
import sys
from typing import Any

import pytest
import typer

from limelight.cli import app
from limelight.cli.command_group import COMMANDS, CommandGroup, LazyCommand
from tests.cli.runner import limelight


@pytest.fixture
def group() -> CommandGroup:
    command: Any = typer.main.get_command(app)
    assert isinstance(command, CommandGroup)
    return command


@pytest.mark.parametrize("arguments", [["--help"], ["--version"], ["serv"]])
def test_program_imports_no_command_before_one_is_used(arguments: list[str]) -> None:
    program = (
        "import sys; from limelight.cli import main\ntry: main()\nexcept SystemExit: print('IMPORTED', *sys.modules)"
    )
    ended = subprocess.run(
        [sys.executable, "-c", program, *arguments], capture_output=True, text=True, timeout=60, check=True
    )
    imported = ended.stdout.rpartition("IMPORTED")[2].split()
    modules = {name for name in imported if name.startswith("limelight")}
    assert modules == {"limelight", "limelight.cli", "limelight.cli.command_group"}
    assert not {"httpx", "rich", "starlette", "uvicorn", "msgspec"}.intersection(imported)


def test_list_shows_each_summary_on_one_line(tmp_path: Any) -> None:
    lines = limelight("--help", folder=tmp_path).stdout.partition("Commands:\n")[2].splitlines()
    assert [line.split(maxsplit=1) for line in lines] == [[command.name, command.summary] for command in COMMANDS]


@pytest.mark.parametrize("lazy", COMMANDS, ids=[command.name for command in COMMANDS])
def test_command_replaces_its_placeholder_when_it_is_used(group: CommandGroup, lazy: LazyCommand) -> None:
    command = group.load(lazy.name)
    assert command.name == lazy.name
    assert command.params or command.commands
    assert group.load(lazy.name) is command is group.commands[lazy.name]


def test_misspelt_command_is_refused_with_the_name_of_the_closest_one(tmp_path: Any) -> None:
    assert "Did you mean 'sessions'?" in limelight("session", folder=tmp_path, code=2).stderr
