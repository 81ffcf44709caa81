"""docs/client.md: its snippets run as they are, and its tables name what is there."""

import inspect
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from limelight.builtin.demo.agent import demo
from limelight.client import Client, ClientError, Socket, errors
from tests.client.conftest import serving_elsewhere
from tests.support import agents
from tests.support.markdown import blocks, codes, rows, sections

TEXT = (Path(__file__).parents[2] / "docs" / "client.md").read_text()
SNIPPETS = blocks(TEXT, "python")


@pytest.mark.parametrize("number", range(len(SNIPPETS)))
def test_a_snippet_runs(number: int, tmp_path: Path) -> None:
    code = SNIPPETS[number]
    agent = agents.asker if "ApprovalRequested" in code else demo
    with serving_elsewhere(agent, data=tmp_path / "data") as url:
        environment = {**os.environ, "LIMELIGHT_URL": url, "PYTHONWARNINGS": "error"}
        done = subprocess.run(
            [sys.executable, "-c", code], cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=60
        )
    assert (done.returncode, done.stderr) == (0, "")
    assert len(done.stdout.splitlines()) >= 2, done.stdout
    for file in tmp_path.glob("*.jsonl"):
        assert file.read_text().count("\n") > 50


def test_every_method_is_in_the_table_with_its_arguments() -> None:
    shown = methods_in("Methods")
    shown["ask"] = ["text", *shown["start"][1:]]
    assert shown == methods_of(Client)
    assert methods_in("Sockets") == methods_of(Socket)


def methods_in(section: str) -> dict[str, list[str]]:
    found = re.findall(r"`(\w+)\(([^)]*)\)`", "".join(row[0] for row in rows(sections(TEXT, 2)[section])))
    return {name: [word.strip() for word in arguments.split(",") if word.strip()] for name, arguments in found}


def methods_of(class_: type) -> dict[str, list[str]]:
    found = inspect.getmembers(class_, inspect.isfunction)
    real = {name: list(inspect.signature(f).parameters)[1:] for name, f in found if not name.startswith("_")}
    del real["aclose"]
    return real


def test_arguments_and_errors_are_in_their_tables() -> None:
    arguments = {name for row in rows(sections(TEXT, 2)["Where, and who"]) for name in codes(row[0])}
    assert arguments == set(inspect.signature(Client).parameters)
    classes = {
        name
        for name, class_ in inspect.getmembers(errors, inspect.isclass)
        if issubclass(class_, ClientError) and class_ is not ClientError
    }
    assert {next(iter(codes(row[0]))) for row in rows(sections(TEXT, 2)["Errors"])} == classes
