"""The wall clock jumps back by an hour: in a run, and between two starts. Order, ids, resume and limits still hold.

The agents' file, `shifted_clock_agents.py`, replaces the wall clock of the server process. The monotonic clock, which
measures durations, is left alone.
"""

import time
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from tests.support.wait import DEADLINE
from tests.system.faults import shifted_clock_agents
from tests.system.faults.invariants import nothing_is_left, sessions, settled, whole
from tests.system.faults.threaded_viewers import Listener, Reader, Watcher
from tests.system.processes.server_process import ServerProcess, joined

HOUR = 3600
AGENTS = [f"{shifted_clock_agents.__file__}:{name}" for name in ("timed", "asker", "quiet", "hello")]


def clock(folder: Path) -> Path:
    path = folder / "clock"
    path.write_text("0")
    return path


def ask(server: ServerProcess, agent: str, session_id: str) -> list[dict[str, Any]]:
    return [data for _, data in server.ask(agent=agent, session_id=session_id)]


def check_records(server: ServerProcess, run_id: str) -> None:
    """Numbers have no gap, times do not go back, nothing takes less than no time."""
    records = [data for _, data in whole(server, run_id, "records")]
    seqs = [record["seq"] for record in records]
    assert all(earlier < later for earlier, later in pairwise(seqs))
    times = [record["at"] for record in records]
    assert times == sorted(times)
    durations = [record["event"].get("duration_ms") for record in records]
    assert all(duration is None or 0 <= duration < 60_000 for duration in durations)
    run = server.get(f"/runs/{run_id}")[1]
    assert run["ended_at"] >= run["started_at"]


@pytest.mark.requirement("clock-set-back")
def test_clock_set_back_during_a_run_keeps_order_and_resume(tmp_path: Path) -> None:
    hands = clock(tmp_path)
    with ServerProcess(tmp_path / "data", *AGENTS, CLOCK=str(hands)) as server:
        ask(server, "hello", "warm")
        before = settled(server)
        listener = Listener(server, "s", "timed").begin()
        asking = Reader(server, "typed", session_id="s", agent="timed").begin()
        asking.until_something_came()
        cut = server.follow(asking.run_id, format_="records").take(30)
        hands.write_text(str(-HOUR))
        rest = server.follow(asking.run_id, cut[-1][0], "records").take(10**9)
        watchers: list[Watcher] = [listener, asking]
        for watcher in watchers:
            watcher.until_over()
        assert joined("records", cut + rest) == joined("records", whole(server, asking.run_id, "records"))
        assert all(watcher.whole for watcher in watchers)
        check_records(server, asking.run_id)
        assert ask(server, "timed", "s")[-1] == {"type": "done"}
        for session in sessions(server):
            assert session["state"] == "completed"
            check_records(server, session["run_id"])
        nothing_is_left(server, before, watchers)


@pytest.mark.requirement("clock-set-back")
def test_clock_set_back_between_two_starts_does_not_delay_sealing(tmp_path: Path) -> None:
    hands = clock(tmp_path)
    data = tmp_path / "data"
    with ServerProcess(data, *AGENTS, CLOCK=str(hands)) as server:
        asking = Reader(server, "records", session_id="s", agent="timed").begin()
        asking.until_something_came()
        ask(server, "hello", "done")
        server.kill()
        asking.until_over()
    hands.write_text(str(-HOUR))
    with ServerProcess(data, *AGENTS, CLOCK=str(hands)) as server:
        nothing_is_left(server, None, [asking])  # its lease, an hour in the future, does not delay this
        check_records(server, asking.run_id)
        assert ask(server, "timed", "s")[-1] == {"type": "done"}
        assert ask(server, "hello", "new")[-1] == {"type": "done"}
        found = {session["session_id"]: session for session in sessions(server)}
        assert set(found) == {"s", "done", "new"}
        assert {session["state"] for session in found.values()} == {"completed"}
        assert found["s"]["turns"] == 2
        for session in found.values():
            check_records(server, session["run_id"])
        log = server.stream("GET", "/sessions/s/stream?format=records&after=0").take(found["s"]["last_seq"] // 2)
        seqs = [data["seq"] for _, data in log]
        assert seqs == sorted(seqs)


@pytest.mark.requirement("clock-set-back")
def test_approval_expires_in_time_if_the_clock_is_set_back(tmp_path: Path) -> None:
    hands = clock(tmp_path)
    with ServerProcess(tmp_path / "data", *AGENTS, CLOCK=str(hands), LIMELIGHT_APPROVAL_SECONDS="1.5") as server:
        stream = server.ask(agent="asker", session_id="s")
        frames = iter(stream)
        assert any(data["type"] == "approval" for _, data in frames)
        began = time.monotonic()
        hands.write_text(str(-HOUR))
        rest = [data for _, data in frames]
        assert rest[-1] == {"type": "done"}
        assert any(data["type"] == "approval" and data["data"].get("reason") == "expired" for data in rest), rest
        assert time.monotonic() - began < DEADLINE, "it waited for the clock to come back"
        check_records(server, stream.run_id)
        nothing_is_left(server)


@pytest.mark.requirement("clock-set-back")
def test_time_limits_do_not_depend_on_the_wall_clock(tmp_path: Path) -> None:
    """An hour forth and back again: the run is neither too long nor silent for too long, until it really is."""
    hands = clock(tmp_path)
    with ServerProcess(tmp_path / "data", *AGENTS, CLOCK=str(hands), LIMELIGHT_SILENCE_SECONDS="8") as server:
        watching = Reader(server, "typed", session_id="s", agent="quiet").begin()
        watching.until_something_came()
        hands.write_text(str(HOUR))
        assert server.get(f"/runs/{watching.run_id}")[1]["state"] == "running"
        hands.write_text(str(-HOUR))
        watching.until_over()
        assert watching.seen[-2][1]["data"]["code"] == "silence_timeout"
        check_records(server, watching.run_id)


@pytest.mark.requirement("clock-set-back")
def test_rate_limit_does_not_depend_on_the_wall_clock(tmp_path: Path) -> None:
    """The minute of the rate limit is measured with a clock that cannot be set."""
    hands = clock(tmp_path)
    headers = {"authorization": "Bearer " + "k" * 40, "x-limelight-user-id": "ann"}
    with ServerProcess(
        tmp_path / "data",
        *AGENTS,
        CLOCK=str(hands),
        LIMELIGHT_API_KEY="k" * 40,
        LIMELIGHT_REQUESTS_PER_MINUTE="5",
    ) as server:

        def statuses() -> list[int]:
            return [server.answer(server.request("GET", "/sessions", headers=headers))[0] for _ in range(6)]

        assert statuses() == [200] * 5 + [429]
        hands.write_text(str(-HOUR))
        with server.request("GET", "/sessions", headers=headers) as connection:
            head = connection.recv(4096).decode().lower()
        waits = int(head.partition("retry-after: ")[2].split()[0])
        assert waits <= 60, f"to come back in {waits} s"
