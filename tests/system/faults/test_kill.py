"""kill -9 at a hundred random points, during several runs with several viewers: everything received is in the log."""

import random
import time
from pathlib import Path

import pytest

from tests.support.wait import wait_for
from tests.system.faults.invariants import ENDED, all_is_kept, assert_ended_once, nothing_is_left, sessions, settled
from tests.system.faults.threaded_viewers import Listener, Reader, Watcher
from tests.system.processes.server_process import ServerProcess

SEEDS = range(10)
KILLS = 10
"""For each seed, on one data folder."""
RUNS = 3
LATEST = 0.5
"""The longest time in seconds before the kill. Half of the points are in the first eighth of it."""


def load(server: ServerProcess, rng: random.Random, round_: int) -> list[Watcher]:
    """Start some runs, each with a viewer on a socket, which connects before the run, and one of its stream."""
    found: list[Watcher] = []
    for number in range(RUNS):
        session_id = f"s{round_}-{number}"
        found.append(Listener(server, session_id, "endless").begin())
        found.append(Reader(server, rng.choice(["typed", "records"]), session_id=session_id, agent="endless").begin())
    return found


def follow(server: ServerProcess, rng: random.Random, watchers: list[Watcher]) -> list[Watcher]:
    """Further viewers of the runs that have begun."""
    known = [watcher.run_id for watcher in watchers if isinstance(watcher, Reader) and watcher.run_id]
    return [Reader(server, rng.choice(["typed", "records"]), run_id=run_id).begin() for run_id in known]


@pytest.mark.requirement("log-before-viewers")
@pytest.mark.parametrize("seed", SEEDS)
def test_kill_at_random_points_loses_nothing_that_was_received(tmp_path: Path, seed: int) -> None:
    rng = random.Random(seed)
    data = tmp_path / "data"
    watchers: list[Watcher] = []
    received = 0
    for round_ in range(KILLS + 1):
        with ServerProcess(data, "endless", "hello") as server:
            all_is_kept(server, watchers)
            states = {session["run_state"] for session in sessions(server)}
            assert states <= {*ENDED, None}  # a viewer may have created its session before the run began
            if round_:
                status, answer = server.post("/chat", turn(f"s{round_ - 1}-0"))
                assert (status, answer["message"]["content"]) == (200, "hello"), "the session accepts a new run"
            settled(server)
            if round_ == KILLS:
                nothing_is_left(server)  # of all rounds, because reading all runs takes long
                break
            watchers = load(server, rng, round_)
            time.sleep(LATEST * rng.random() ** 3)  # a random time, which may be between two events
            watchers += follow(server, rng, watchers)
            time.sleep(LATEST * rng.random() ** 3)
            server.kill()
            for watcher in watchers:
                watcher.until_over()
            received += sum(len(watcher.seen) for watcher in watchers)
    assert received > 10 * KILLS, f"seed {seed}: too little was received to check anything"


def turn(session_id: str) -> dict[str, object]:
    return {"messages": [{"role": "user", "content": "hi"}], "session_id": session_id, "agent": "hello"}


@pytest.mark.requirement("kill")
def test_killed_run_without_a_response_is_sealed(tmp_path: Path) -> None:
    """The server is killed before its response is read: at ten random points, and once after the run has begun."""
    data = tmp_path / "data"
    rng = random.Random("unanswered")
    for attempt in range(11):
        with ServerProcess(data, "endless") as server:
            body = {"messages": [{"role": "user", "content": "go"}], "session_id": f"s{attempt}"}
            with server.request("POST", "/chat/stream", body):
                time.sleep(rng.random() * 0.02)
                if attempt == 10:
                    wait_for("the run", lambda: server.get("/sessions/s10")[1].get("run_id"))
                server.kill()
    with ServerProcess(data, "endless") as server:
        found = sessions(server)
        assert "s10" in {session["session_id"] for session in found}
        for session in found:
            assert_ended_once(server, session["run_id"])
