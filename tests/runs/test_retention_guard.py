"""The guard of retention over restarts, with a real store and a clock that the test moves."""

import os
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from limelight.errors import SetupError
from limelight.runs.retention_clock import DAY_MS, Pause, RetentionState, TrustedTime
from limelight.runs.retention_guard import CONFIRMATION, STATE, Confirmation, RetentionFiles, RetentionGuard
from limelight.stores.sqlite import SqliteStore
from tests.stores.operations import S1, complete_run

START = 1_750_000_000_000
HOUR = 1 / 24


class Machine:
    """A data folder, and the two clocks of the machine that it is on."""

    def __init__(self, data: Path) -> None:
        self.data = data
        self.store = SqliteStore(data / "limelight.db")
        self.clock = START
        self._monotonic = 1000.0

    def pass_time(self, days: float) -> None:
        """Time in which the machine runs: both clocks advance."""
        self._monotonic += days * DAY_MS / 1000
        self.clock += round(days * DAY_MS)

    def jump(self, days: float) -> None:
        """The wall clock is set, or the machine was switched off or suspended."""
        self.clock += round(days * DAY_MS)

    @asynccontextmanager
    async def server(self, max_gap_days: float = 7) -> AsyncGenerator[RetentionGuard]:
        self.store = SqliteStore(self.data / "limelight.db")
        await self.store.open()
        try:
            guard = RetentionGuard(self.data, max_gap_days, clock=lambda: self.clock, monotonic=lambda: self._monotonic)
            await guard.open(self.store)
            await guard.check()
            yield guard
        finally:
            await self.store.close()

    async def write_record(self, run_id: str) -> None:
        """A run by the clock of now."""
        await complete_run(self.store, run_id, S1, at=self.clock)

    def confirm(self) -> None:
        pause = Pause(expected_at=0, clock_at=self.clock, behind=False)
        RetentionFiles(self.data).confirm(Confirmation(self.clock, pause))


@pytest.fixture
async def machine(tmp_path: Path) -> Machine:
    """One whose server has run before and wrote a record."""
    machine = Machine(tmp_path)
    async with machine.server():
        await machine.write_record("r1")
    return machine


async def test_start_with_the_clock_ahead_pauses_over_restarts_and_new_records(machine: Machine) -> None:
    machine.jump(400)
    for number in range(3):
        async with machine.server() as guard:
            assert guard.pause is not None
            assert guard.pause.gap_ms == 400 * DAY_MS
            await machine.write_record(f"wrong-{number}")
            assert await guard.check() == machine.clock
            assert guard.pause is not None


async def test_jump_while_the_server_runs_pauses_until_it_is_corrected(machine: Machine) -> None:
    async with machine.server() as guard:
        machine.pass_time(HOUR)
        machine.jump(400)
        await guard.check()
        assert guard.pause is not None
        await machine.write_record("wrong")
        machine.pass_time(20)
        machine.jump(-400)
        await guard.check()
        assert guard.pause is None
    async with machine.server() as guard:
        assert guard.pause is None, "the time that passed during the pause was saved"
    machine.jump(400)
    async with machine.server() as guard:
        assert guard.pause is not None, "the record in the future does not explain the clock"


async def test_confirmation_beside_a_running_server_ends_the_pause_for_that_jump_only(machine: Machine) -> None:
    machine.jump(400)
    async with machine.server() as guard:
        machine.confirm()
        machine.pass_time(HOUR / 360)
        await guard.check()
        assert guard.pause is None
        machine.jump(400)
        await guard.check()
        assert guard.pause is not None
        assert guard.pause.gap_ms == 400 * DAY_MS
    async with machine.server() as guard:
        assert guard.pause is not None, "the old confirmation does not count for the second jump"


async def test_jump_between_confirmation_and_the_next_check_pauses(machine: Machine) -> None:
    machine.jump(400)
    async with machine.server() as guard:
        machine.confirm()
        machine.jump(400)
        await guard.check()
        assert guard.pause is not None


@pytest.mark.requirement("retention-clock")
async def test_confirmation_without_a_server_is_used_at_the_next_start_and_after_restarts(machine: Machine) -> None:
    machine.jump(365)
    async with machine.server() as guard:
        assert guard.pause is not None
    machine.confirm()
    machine.jump(3)
    for _ in range(3):
        async with machine.server() as guard:
            assert guard.pause is None
            machine.pass_time(2)
            await guard.check()
    machine.jump(365)
    async with machine.server() as guard:
        assert guard.pause is not None


@pytest.mark.parametrize("max_gap_days", [7, HOUR, HOUR / 60, 0])
async def test_crash_loses_less_time_than_the_clock_may_be_off(machine: Machine, max_gap_days: float) -> None:
    """A server that is killed has saved the time recently enough not to be paused at its next start."""
    async with machine.server(max_gap_days) as guard:
        for _ in range(100):
            machine.pass_time(10 / 24 / 3600)
            await guard.check()
    async with machine.server(max_gap_days) as guard:
        assert guard.pause is None


@pytest.mark.requirement("retention-clock")
async def test_clock_that_went_back_pauses_until_it_is_confirmed(machine: Machine) -> None:
    """The records of that time look 400 days old once the clock is right again."""
    async with machine.server() as guard:
        machine.jump(-400)
        await guard.check()
        await machine.write_record("old-date")
    machine.jump(400)
    async with machine.server() as guard:
        assert guard.pause is not None
        machine.confirm()
        await guard.check()
        assert guard.pause is None


async def test_first_clock_of_a_new_server_was_ahead_and_is_corrected(tmp_path: Path) -> None:
    """All dates of the first days are in the future. Nothing that is written later may be deleted by them."""
    machine = Machine(tmp_path)
    machine.jump(400)
    async with machine.server() as guard:
        assert guard.pause is None
        await machine.write_record("future")
    machine.jump(-400)
    async with machine.server() as guard:
        assert guard.pause is not None
        await machine.write_record("present")
    machine.jump(400)
    async with machine.server() as guard:
        assert guard.pause is not None, "the clock is back at the saved time, and `present` looks 400 days old"


async def test_older_copy_of_the_database_pauses(machine: Machine) -> None:
    backup = (machine.data / "limelight.db").read_bytes()
    async with machine.server() as guard:
        for number in range(20):
            machine.pass_time(5)
            await machine.write_record(f"later-{number}")
            await guard.check()
    (machine.data / "limelight.db").write_bytes(backup)
    async with machine.server() as guard:
        assert guard.pause is not None
        assert guard.pause.gap_ms > 99 * DAY_MS


async def test_state_that_cannot_be_read_is_replaced_and_logged_once(
    machine: Machine, caplog: pytest.LogCaptureFixture
) -> None:
    (machine.data / STATE).write_text("{")
    async with machine.server() as guard:
        await guard.check()
        assert guard.pause is None
    assert caplog.text.count("the newest record is used in its place") == 1
    assert RetentionFiles(machine.data).load() is not None


async def test_confirmation_that_cannot_be_read_changes_nothing(
    machine: Machine, caplog: pytest.LogCaptureFixture
) -> None:
    machine.jump(400)
    machine.confirm()
    async with machine.server() as guard:
        assert guard.pause is None
        (machine.data / CONFIRMATION).write_text("{")
        await guard.check()
        await guard.check()
        assert guard.pause is None
    async with machine.server() as guard:
        assert guard.pause is None
        (machine.data / CONFIRMATION).unlink()
        await guard.check()
        assert guard.pause is None
    assert caplog.text.count("confirmations are not seen") == 2, "once for each start"


async def test_data_folder_that_is_gone_is_not_created(machine: Machine, caplog: pytest.LogCaptureFixture) -> None:
    aside = machine.data.with_name("aside")
    async with machine.server() as guard:
        machine.data.rename(aside)
        machine.pass_time(2)
        await guard.check()
        await guard.check()
        assert not machine.data.exists()
        aside.rename(machine.data)
        await guard.check()
    assert caplog.text.count("cannot be saved") == 1
    state = RetentionFiles(machine.data).load()
    assert state is not None
    assert state.trusted.at == machine.clock


def test_saved_files_are_private_and_load_unchanged(tmp_path: Path) -> None:
    files = RetentionFiles(tmp_path)
    assert (files.load(), files.confirmed_at()) == (None, 0)
    pause = Pause(expected_at=1, clock_at=2, behind=True)
    state = RetentionState(trusted=TrustedTime(3, pause), newest_at=4, confirmed_at=5)
    files.save(state)
    files.confirm(Confirmation(6, pause))
    assert (files.load(), files.confirmed_at()) == (state, 6)
    assert {path.name: path.stat().st_mode & 0o777 for path in tmp_path.iterdir()} == {
        STATE: 0o600,
        CONFIRMATION: 0o600,
    }


def test_file_of_root_belongs_to_the_owner_of_the_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[tuple[int, int]] = []
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(os, "fchown", lambda _, user, group: given.append((user, group)))  # pyright: ignore[reportUnknownLambdaType, reportUnknownArgumentType]
    RetentionFiles(tmp_path).confirm(Confirmation(6, Pause(expected_at=1, clock_at=2, behind=False)))
    owner = tmp_path.stat()
    assert given == [(owner.st_uid, owner.st_gid)]


def test_confirmation_that_cannot_be_written_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(SetupError, match="run this as the user"):
        RetentionFiles(tmp_path / "none").confirm(Confirmation(6, Pause(expected_at=1, clock_at=2, behind=False)))
