"""A run that waits for a decision is reopened after a restart with the options of its request."""

from pathlib import Path
from typing import Any

import pytest

from limelight.models import User
from limelight.runs.committer import INTERVAL
from limelight.sources.base import Turn
from limelight.stores.memory import MemoryDatabase
from tests.runs.process import Process, started
from tests.support.clock import Clock


async def reopened(folder: Path, clock: Clock, **request: Any) -> tuple[Turn, Turn]:
    """The turn that the agent got at first, and the one after a restart."""
    database = MemoryDatabase()
    before, after = Process(folder, database), Process(folder, database)
    before.source.approvals = after.source.approvals = 1
    async with started(before):
        await before.begin(**request)
        await clock.settle()
        await clock.advance(INTERVAL)
    await before.store.close()
    async with started(after):
        assert await after.recovery.recover() == 0
        await clock.settle()
    return before.source.turns[0], after.source.turns[0]


async def test_reopened_run_has_the_options_of_its_request(tmp_path: Path, loop_clock: Clock) -> None:
    request = {"text": "May I?", "system": ["Be brief.", "Be kind."], "user": User("ann", "Ann Onym"), "max_steps": 3}
    before, after = await reopened(tmp_path, loop_clock, **request)
    assert after.instructions == before.instructions == "Be brief.\n\nBe kind."
    assert after.max_steps == before.max_steps == 3
    assert after.context.user == before.context.user == User("ann", "Ann Onym")
    assert (after.question.text, after.memory_key) == ("May I?", before.memory_key)


async def test_reopened_run_of_a_request_without_options_has_those_of_its_agent(
    tmp_path: Path, loop_clock: Clock
) -> None:
    _, after = await reopened(tmp_path, loop_clock, user=User("ann"))
    assert (after.instructions, after.max_steps, after.context.user) == ("", 50, User("ann"))


@pytest.mark.parametrize("words", [10, 20_000], ids=["short", "long"])
async def test_reopened_run_has_its_complete_question(words: int, tmp_path: Path, loop_clock: Clock) -> None:
    _, after = await reopened(tmp_path, loop_clock, text="please " * words)
    assert after.question.text == "please " * words
