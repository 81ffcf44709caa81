"""Known ways out of a Python sandbox, tried in a real worker at each level: nothing outside is reached or changed."""

import os
from collections.abc import Generator

import pytest

from limelight.builtin.agent_config import IMPORTS
from limelight.sandbox.policy import Level
from tests.sandbox.attacker import Attacker, Outside
from tests.sandbox.escapes import INTERPRETED, METADATA, NATIVE, Escape


@pytest.fixture(scope="module")
def attacker(level: Level, outside: Outside) -> Generator[Attacker]:
    """A worker that all attacks of a level share. Each runs as native Python."""
    attacker = Attacker(outside.sandbox(level), outside.workspace)
    yield attacker
    attacker.close()


@pytest.mark.requirement("sandbox-confines")
@pytest.mark.parametrize("escape", NATIVE, ids=lambda escape: escape.name)
def test_native_code_does_not_get_out(escape: Escape, level: Level, attacker: Attacker, outside: Outside) -> None:
    before = outside.state()
    report = attacker.attack(escape.code, outside.target(level))
    assert not report.reached, report
    assert outside.secret not in report.message
    assert escape in METADATA or not report.error or {"OSError", *escape.errors} & set(report.error.split()), report
    assert outside.state() == before
    assert attacker.attack("reached = 1").reached, "the worker is gone"


@pytest.fixture(scope="module")
def interpreter(level: Level, outside: Outside) -> Generator[Attacker]:
    """A worker with the default imports of `codact`."""
    attacker = Attacker(outside.sandbox(level), outside.workspace)
    attacker.start(list(IMPORTS))
    yield attacker
    attacker.close()


@pytest.mark.requirement("sandbox-confines")
@pytest.mark.parametrize("escape", INTERPRETED, ids=lambda escape: escape.name)
def test_interpreted_code_does_not_get_out(
    escape: Escape, level: Level, interpreter: Attacker, outside: Outside
) -> None:
    end = interpreter.run(f"target = {outside.target(level)!r}\n{escape.code}\nresult")
    assert outside.secret not in str(end)
    assert "uid=" not in str(end)
    assert f"{os.environ['HOME']}" not in str(end)
