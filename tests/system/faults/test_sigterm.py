"""SIGTERM with twenty runs and fifty viewers: the server exits, all viewers get the end, and everything is stored."""

import signal
from pathlib import Path
from typing import Any

import pytest

from tests.system.faults.invariants import assert_ended_once, nothing_is_left
from tests.system.faults.threaded_viewers import Listener, Reader, Watcher
from tests.system.processes.server_process import ServerProcess

RUNS = 20


@pytest.mark.requirement("shutdown")
def test_sigterm_under_load_sends_the_end_to_all_viewers(tmp_path: Path) -> None:
    data = tmp_path / "data"
    with ServerProcess(data, "endless", "hello", LIMELIGHT_GRACE_SECONDS="0") as server:
        asking = [Reader(server, "typed", session_id=f"s{number}", agent="endless").begin() for number in range(RUNS)]
        for watcher in asking:
            watcher.until_something_came()
        others: list[Watcher] = [Reader(server, "records", run_id=watcher.run_id).begin() for watcher in asking]
        others += [Listener(server, f"s{number}", "endless").begin() for number in range(RUNS // 2)]
        for watcher in others:
            watcher.until_something_came()
        watchers = [*asking, *others]
        assert server.terminate() == -signal.SIGTERM
        for watcher in watchers:
            watcher.until_over()
        assert all(watcher.whole for watcher in watchers)
        assert "Traceback" not in server.log
    for watcher in watchers:
        ends = [kind_of(watcher.format, frame) for _, frame in watcher.seen]
        assert ends.count("the end") == 1 and ends[-1] == "the end", (watcher.format, watcher.seen[-3:])
    with ServerProcess(data, "endless", "hello") as server:
        nothing_is_left(server, None, watchers)
        for watcher in asking:
            assert_ended_once(server, watcher.run_id)
            assert server.get(f"/runs/{watcher.run_id}")[1]["error"]["code"] == "interrupted"


def kind_of(format_: str, frame: dict[str, Any]) -> str:
    """ "the end" if this is how a run ends in this format."""
    is_end = {
        "typed": frame.get("type") == "done",
        "records": frame.get("event", {}).get("kind") == "run_failed",
        "v2": frame.get("metadata", {}).get("code") == "interrupted",
    }
    return "the end" if is_end[format_] else ""
