"""Fixtures of sandboxes: the levels, each forced, and a folder with things outside of a sandbox."""

from collections.abc import Generator

import pytest

from limelight.sandbox.levels import availability
from limelight.sandbox.policy import Level
from tests.sandbox.attacker import Attacker, Outside

LEVELS: tuple[Level, ...] = ("bubblewrap", "landlock")


@pytest.fixture(scope="module")
def outside(tmp_path_factory: pytest.TempPathFactory) -> Generator[Outside]:
    """Things outside of the sandbox. Each, and this process's environment, contains a secret."""
    world = Outside(tmp_path_factory.mktemp("world").resolve())
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LIMELIGHT_TEST_SECRET", world.secret)
        patch.setenv("HOME", str(world.folder / "home"))
        with world.started():
            yield world


@pytest.fixture(scope="module", params=LEVELS)
def level(request: pytest.FixtureRequest) -> Level:
    """Each level that confines code. Both have to work on a machine that runs the tests."""
    found = availability(request.param)
    assert found.works, f"{request.param}: {found.reason}"
    return request.param


@pytest.fixture
def fresh(level: Level, outside: Outside) -> Generator[Attacker]:
    """A worker of one test."""
    attacker = Attacker(outside.sandbox(level), outside.workspace)
    yield attacker
    attacker.close()
