"""Conditions after any fault: the log has everything that was received, no run is open, resources are released."""

import time
from collections.abc import Collection, Iterable
from typing import Any, NamedTuple

import psutil

from limelight.events import TERMINAL_TYPES, kind_of
from tests.support.wait import DEADLINE
from tests.system.faults.threaded_viewers import Watcher
from tests.system.processes.server_process import ServerProcess, begins_with, joined

MB = 1024 * 1024
MEMORY = 60 * MB
"""How much a warm process may grow: memory that allocators keep, and that another run would use again."""
ENDS = {kind_of(kind) for kind in TERMINAL_TYPES}
ENDED = {"finished", "failed", "cancelled"}


class Traces(NamedTuple):
    """Resources of a process."""

    files: int
    threads: int
    connections: int
    rss: int


READER = Traces(files=4, threads=2, connections=0, rss=0)
"""Resources that the store opens permanently with its first two concurrent reads, which may be during the fault."""


def traces(server: ServerProcess) -> Traces:
    process = psutil.Process(server.pid)
    found = [c for c in process.net_connections("tcp") if c.status != psutil.CONN_LISTEN]
    connections = [c for c in found if c.laddr.port == server.port]  # without its connections to a collector
    return Traces(process.num_fds(), process.num_threads(), len(connections), process.memory_info().rss)


def settled(server: ServerProcess) -> Traces:
    """The resources when all connections are closed, which takes a moment."""
    deadline = time.monotonic() + DEADLINE
    while (now := traces(server)).connections:
        assert time.monotonic() < deadline, now
        time.sleep(0.02)  # closing has no event to wait for
    return now


def nothing_is_left(
    server: ServerProcess,
    before: Traces | None = None,
    watchers: Iterable[Watcher] = (),
    *,
    live: Collection[str] = (),
    memory: int = MEMORY,
) -> None:
    """Check the conditions. Runs in `live` may be live; `before` are the resources of the same process, warm."""
    all_is_kept(server, watchers)
    for session in sessions(server):
        if session["run_id"] is not None:
            assert_ended_once(server, session["run_id"], session["run_id"] in live)
    if before is None:
        return
    now = settled(server)
    deadline = time.monotonic() + DEADLINE
    while now.files > before.files + READER.files or now.threads > before.threads + READER.threads:
        assert time.monotonic() < deadline, f"{now} is left, and there was {before}"
        time.sleep(0.02)
        now = settled(server)
    grown = now.rss - before.rss
    assert grown < memory, f"{grown / MB:.0f} MB more than before"


def all_is_kept(server: ServerProcess, watchers: Iterable[Watcher]) -> None:
    """Check that the log has everything that these viewers received."""
    for watcher in watchers:
        if watcher.run_id and watcher.seen:
            assert_kept(server, watcher.run_id, watcher.format, watcher.seen)


def assert_kept(server: ServerProcess, run_id: str, format_: str, seen: list[tuple[str, Any]]) -> None:
    """Check that the log of a run begins with these frames."""
    kept = joined(format_, whole(server, run_id, format_))
    assert begins_with(kept, joined(format_, seen)), f"{run_id} in {format_} is not what was seen"


def assert_ended_once(server: ServerProcess, run_id: str, live: bool = False) -> None:
    """Check that a run has one terminal event, at its end; a live run has none."""
    state = server.get(f"/runs/{run_id}")[1]["state"]
    assert (state not in ENDED) == live, f"{run_id} is {state}"
    if not live:
        kinds = [data["event"]["kind"] for _, data in whole(server, run_id, "records")]
        assert [kind in ENDS for kind in kinds] == [False] * (len(kinds) - 1) + [True], kinds[-5:]


def whole(server: ServerProcess, run_id: str, format_: str) -> list[tuple[str, Any]]:
    """All frames of an ended run."""
    return server.follow(run_id, "0", format_).take(10**9)


def sessions(server: ServerProcess) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    after = ""
    while True:
        page = server.get(f"/sessions?limit=200{after}")[1]
        found += page["sessions"]
        if page["next"] is None:
            return found
        after = f"&after={page['next']}"
