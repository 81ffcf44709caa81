"""Real faults of the store of a running server: errors name the cause, nothing is lost, runs continue afterwards."""

import json
import shutil
import threading
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.support.wait import DEADLINE, wait_for
from tests.system.faults.disk_faults import full, locked_by_another, small_disk, started_when_full, unwritable
from tests.system.faults.invariants import MB, MEMORY, Traces, assert_kept, nothing_is_left, settled
from tests.system.processes.server_process import ServerProcess, Stream, read_head

HELLO = {"messages": [{"role": "user", "content": "hi"}], "agent": "hello"}
BEGAN, ENDED = "cannot be written: ", "can be written again"


class Following(threading.Thread):
    """Reads a stream of Records as they come, and keeps them."""

    def __init__(self, stream: Stream) -> None:
        super().__init__(daemon=True)
        self.run_id = stream.run_id
        self.frames: list[tuple[str, Any]] = []
        self._stream = stream
        self.start()

    def run(self) -> None:
        try:
            for frame in self._stream:
                self.frames.append(frame)
        except (OSError, ValueError, AssertionError):  # the server has ended
            return

    @property
    def last(self) -> int:
        return int(self.frames[-1][0]) if self.frames else 0

    def is_quiet(self, seconds: float) -> bool:
        """Whether nothing arrives during this time."""
        before = self.last
        time.sleep(seconds)
        return self.last == before

    def seqs(self) -> list[int]:
        return [int(cursor) for cursor, _ in self.frames]


def ready(server: ServerProcess) -> tuple[int, str]:
    status, body = server.get("/ready")
    return status, body["checks"]["store"]


def refused(server: ServerProcess) -> dict[str, Any]:
    """Check that a new run is refused with the cause and `Retry-After`, and return the problem."""
    began = time.monotonic()
    connection = server.request("POST", "/chat", HELLO)
    with connection, connection.makefile("rb") as reader:
        status, headers = read_head(reader)
        body = json.loads(reader.read())
    assert time.monotonic() - began < DEADLINE
    assert (status, headers["content-type"]) == (503, "application/problem+json")
    assert (body["code"], int(headers["retry-after"])) == ("store_unavailable", body["retry_after"])
    return body


def answered(server: ServerProcess) -> None:
    status, answer = server.post("/chat", HELLO)
    assert (status, answer["message"]["content"]) == (200, "hello")


def check_kept(server: ServerProcess, *viewers: Following) -> None:
    """Check that the log has what the viewers received, in that order, and that every run has ended once."""
    for following in viewers:
        seen = list(following.frames)
        assert [int(cursor) for cursor, _ in seen] == list(range(1, len(seen) + 1))
        assert_kept(server, following.run_id, "records", seen)
    nothing_is_left(server)


def check_lived(server: ServerProcess, before: Traces, *viewers: Following, memory: int = MEMORY) -> None:
    """Stop the runs, and check that the process has released its resources and every run has ended once."""
    for following in viewers:
        assert server.post(f"/runs/{following.run_id}/cancel")[0] == 200
        following.join(DEADLINE)
        assert not following.is_alive(), "a stream does not end"
    nothing_is_left(server, before, memory=memory)


@contextmanager
def live(data: Path, *agents: str) -> Generator[tuple[ServerProcess, Following, Traces]]:
    """A server with a live run, a viewer of it, and the resources of the warm process before the run."""
    with ServerProcess(data, "endless", "hello", *agents) as server:
        answered(server)
        before = settled(server)
        following = Following(server.ask(agent="endless", session_id="s", format="records"))
        wait_for("300 records", lambda: following.last > 300)  # the database's own log is larger than ours then
        yield server, following, before


def check_fault(server: ServerProcess, following: Following, words: str) -> None:
    """Check a server during the fault: errors name the cause, viewers get nothing new, the process answers."""
    wait_for(words, lambda: ready(server) == (503, f"failed: {words}"))
    assert words in refused(server)["detail"]
    assert server.get("/health") == (200, {"status": "ok"})
    wait_for("the end of what was committed before", lambda: following.is_quiet(1))
    assert following.is_quiet(1)


def check_mended(server: ServerProcess, following: Following, faults: int = 1) -> None:
    """Afterwards everything continues without help; the log has a line for the start of the fault and one for its end.

    `faults`: how often it may have started. While a disk fills up, a large commit may fail and a small one still work.
    """
    before = following.last
    wait_for("a ready server", lambda: ready(server)[0] == 200)
    wait_for("new records", lambda: following.last > before + 100)
    answered(server)
    assert following.seqs() == list(range(1, following.last + 1))
    assert 1 <= server.log.count(BEGAN) == server.log.count(ENDED) <= faults, server.log


@pytest.mark.requirement("store-fault")
def test_full_disk_pauses_runs_until_there_is_space(tmp_path: Path) -> None:
    data = tmp_path / "data"
    with small_disk(data, 16) as mounted:
        with live(data, "dump") as (server, following, before):
            with full(data, mounted, server):
                check_fault(
                    server, following, "the disk is full" if mounted else "the disk does not take what is written"
                )
            check_mended(server, following)
            check_lived(server, before, following)
            server.kill()
        with ServerProcess(data, "endless", "hello") as server:
            check_kept(server, following)


@pytest.mark.requirement("start-temporary-fault")
@pytest.mark.parametrize("has_lock_file", [True, False])
def test_start_on_a_full_disk_is_a_temporary_failure(tmp_path: Path, has_lock_file: bool) -> None:
    """The server prints one line with the remedy, and exits with the code for a temporary failure."""
    data = tmp_path / "data"
    with small_disk(data, 16) as mounted:
        with ServerProcess(data, "hello") as server:
            answered(server)
            server.terminate()
            if not has_lock_file:
                (data / "limelight.db.lock").unlink()
            ended = started_when_full(data, mounted, server)
            assert ended.returncode == 75, ended.stderr
            (line,) = ended.stderr.splitlines()
            assert line.startswith("limelight: ") and "room" in line
        with ServerProcess(data, "hello") as server:
            answered(server)
            assert len(server.get("/sessions")[1]["sessions"]) == 2


@pytest.mark.requirement("store-fault-memory")
def test_agent_that_floods_during_a_full_disk_has_to_wait(tmp_path: Path) -> None:
    data = tmp_path / "data"
    with small_disk(data, 256) as mounted, live(data, "dump") as (server, following, warm):
        dump = Following(server.ask(agent="dump", session_id="d", format="records"))
        wait_for("output", lambda: dump.last > 20)
        with full(data, mounted, server):
            wait_for("the fault", lambda: ready(server)[0] == 503)
            before = psutil.Process(server.pid).memory_info().rss
            time.sleep(3)  # the agent would have printed tens of megabytes
            assert psutil.Process(server.pid).memory_info().rss - before < 20 * 1024**2
        check_mended(server, following, faults=2)
        check_lived(server, warm, following, dump, memory=150 * MB)
        server.kill()
        with ServerProcess(data, "endless", "hello") as server:
            check_kept(server, following, dump)


@pytest.mark.requirement("store-fault")
def test_database_locked_for_ten_seconds_pauses_runs(tmp_path: Path) -> None:
    data = tmp_path / "data"
    with live(data) as (server, following, before):
        with locked_by_another(data / "limelight.db", 10) as other:
            status, words = ready(server)
            assert (status, words) in [
                (503, "failed: the database does not answer"),
                (503, "failed: another program has locked the database"),
            ]
            status, answer = server.post("/chat", HELLO)  # it waits for up to ten seconds, which may be enough
            assert (status, answer.get("code")) in [(503, "store_unavailable"), (200, None)]
            other.wait(DEADLINE)
        check_mended(server, following)
        check_lived(server, before, following)
        server.kill()
    with ServerProcess(data, "endless", "hello") as server:
        check_kept(server, following)


@pytest.mark.requirement("store-fault")
def test_read_only_database_pauses_runs_until_it_is_writable(tmp_path: Path) -> None:
    data = tmp_path / "data"
    with live(data) as (server, following, before):
        with unwritable(data, server):
            wait_for("the fault", lambda: ready(server)[0] == 503)
            words = ready(server)[1].removeprefix("failed: ")
            assert words in ("the database can only be read", "the disk does not take what is written")
            check_fault(server, following, words)
        check_mended(server, following)
        check_lived(server, before, following)
        server.kill()
    with ServerProcess(data, "endless", "hello") as server:
        check_kept(server, following)


@pytest.mark.requirement("store-fault")
@pytest.mark.parametrize("whole_folder", [True, False])
def test_moved_database_pauses_runs_until_it_is_back(tmp_path: Path, whole_folder: bool) -> None:
    data = tmp_path / "data"
    place = data if whole_folder else data / "limelight.db"
    with live(data) as (server, following, before):
        place.rename(tmp_path / "aside")
        check_fault(server, following, "the database file is gone")
        (tmp_path / "aside").rename(place)
        check_mended(server, following)
        check_lived(server, before, following)
        server.kill()
    with ServerProcess(data, "endless", "hello") as server:
        check_kept(server, following)


@pytest.mark.requirement("deleted-database")
def test_deleted_data_folder_is_rescued_at_shutdown(tmp_path: Path) -> None:
    data = tmp_path / "data"
    with live(data) as (server, following, _):
        shutil.rmtree(data)
        check_fault(server, following, "the database file was deleted")
        server.terminate()
        assert "was deleted while it was open: its content is in" in server.log
    (data / "limelight.db.rescued").rename(data / "limelight.db")
    with ServerProcess(data, "endless", "hello") as server:
        check_kept(server, following)
        kept = server.follow(following.run_id, format_="records").take(10**9)
        assert kept[-1][1]["event"]["code"] == "interrupted"
        answered(server)


@pytest.mark.requirement("foreign-database")
def test_server_does_not_write_to_the_database_that_replaced_its_own(tmp_path: Path) -> None:
    """The first server does not write to the database that the second has created."""
    data = tmp_path / "data"
    with live(data) as (server, following, _):
        data.rename(tmp_path / "aside")
        with ServerProcess(data, "hello") as second:
            check_fault(server, following, "another file is in the place of the database")
            answered(second)
            second.terminate()
        server.terminate()
    with ServerProcess(data, "hello") as second:
        _, listed = second.get("/sessions")
        assert len(listed["sessions"]) == 1
    with ServerProcess(tmp_path / "aside", "endless", "hello") as server:
        check_kept(server, following)
