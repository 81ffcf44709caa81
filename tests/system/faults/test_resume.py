"""A stream that is cut at random points and resumed loses and repeats nothing."""

import random
from pathlib import Path

import pytest

from tests.system.processes.server_process import ServerProcess, joined


@pytest.mark.requirement("resume-exact")
@pytest.mark.parametrize("format_", ["typed", "records"])
@pytest.mark.parametrize("agent", ["steady", "burst"])
def test_stream_cut_at_random_points_resumes_exactly(tmp_path: Path, agent: str, format_: str) -> None:
    rng = random.Random(f"{agent} {format_}")
    with ServerProcess(tmp_path / "data", agent) as server:
        for attempt in range(20):
            stream = server.ask(session_id=f"s{attempt}", format=format_)
            run_id = stream.run_id
            received = stream.take(rng.randint(1, 300))
            while True:
                stream = server.follow(run_id, received[-1][0], format_)
                if stream.status == 204:
                    break
                received += stream.take(rng.randint(1, 400))
            whole = server.follow(run_id, "0", format_).take(10**9)
            assert joined(format_, received) == joined(format_, whole)
            assert len(whole) > 100


@pytest.mark.requirement("same-for-all-viewers")
def test_viewers_that_connect_at_any_time_receive_the_same(tmp_path: Path) -> None:
    with ServerProcess(tmp_path / "data", "steady") as server:
        first = server.ask(session_id="s")
        streams = [first]
        frames = iter(first)
        seen = [next(frames) for _ in range(20)]
        while len(streams) < 10:
            streams.append(server.follow(first.run_id))
            seen += [next(frames) for _ in range(20)]
        seen += list(frames)
        for stream in streams[1:]:
            assert joined("typed", list(stream)) == joined("typed", seen)
            assert stream.whole
