"""Many viewers, some of which never read: they do not delay the run, and memory stays bounded."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.system.faults.invariants import nothing_is_left, settled
from tests.system.processes.server_process import ServerProcess, Stream

MB = 1024 * 1024


@pytest.mark.requirement("slow-viewers")
def test_viewers_that_never_read_do_not_delay_the_run(tmp_path: Path) -> None:
    with ServerProcess(tmp_path / "data", "dump", "hello") as server:
        process = psutil.Process(server.pid)
        list(server.ask(agent="hello"))
        before = settled(server)
        dead = server.ask(session_id="s", agent="dump")
        others = [server.follow(dead.run_id) for _ in range(4)]
        reader = server.follow(dead.run_id, format_="records")
        received = list(reader)
        assert received[-1][1]["event"]["kind"] == "run_finished"
        printed = sum(len(d["event"]["text"]) for _, d in received if d["event"]["kind"] == "tool_output_delta")
        assert printed == 50_000_000
        grown = process.memory_info().rss - before.rss
        assert grown < 100 * MB, f"{grown / MB:.0f} MB for 50 MB of output and five readers who do not read"
        late = list(others[0])
        assert late[-1][1] == {"type": "done"}
        assert sum(len(d["data"]["content"]) for _, d in late if d["type"] == "tool_output") == 50_000_000
        for stream in (dead, *others):
            stream.close()
        nothing_is_left(server, before, memory=100 * MB)


def printed(frames: list[tuple[str, Any]]) -> str:
    return "".join(data["data"]["content"] for _, data in frames if data["type"] == "tool_output")


def printed_by(viewer: Stream) -> str:
    return printed(list(viewer))


@pytest.mark.requirement("slow-viewers", "same-for-all-viewers")
def test_200_viewers_receive_the_same_while_20_never_read(tmp_path: Path) -> None:
    with ServerProcess(tmp_path / "data", "chatty", "hello") as server:
        process = psutil.Process(server.pid)
        list(server.ask(agent="hello"))
        before = settled(server)
        first = server.ask(session_id="s", agent="chatty")
        viewers = [server.follow(first.run_id) for _ in range(200)]
        whole = printed(list(first))
        assert len(whole) == 500 * 4000
        with ThreadPoolExecutor(20) as readers:
            for seen in readers.map(printed_by, viewers[20:]):
                assert seen == whole
        assert all(viewer.whole for viewer in viewers[20:])
        assert server.get(f"/runs/{first.run_id}")[1]["state"] == "finished"
        grown = process.memory_info().rss - before.rss
        assert grown < 100 * MB, f"{grown / MB:.0f} MB for 200 viewers"
        for viewer in viewers:
            viewer.close()
        nothing_is_left(server, before, memory=100 * MB)
