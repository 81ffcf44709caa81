"""kill -9 in the middle of runs: what a viewer received is in the log, the run is sealed, the session goes on."""

import random
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from tests.faults.process import ServerProcess, joined


def test_kill_at_random_points(tmp_path: Path) -> None:
    rng = random.Random(9)
    data = tmp_path / "data"
    for attempt in range(20):
        session_id = f"s{attempt}"
        with ServerProcess(data, "endless", "hello") as server:
            stream = server.ask(session_id=session_id, agent="endless", format="records")
            other = server.ask(session_id=f"other{attempt}", agent="endless", format="records")
            frames, other_frames = iter(stream), iter(other)
            received = [next(frames) for _ in range(rng.randint(1, 400))]
            other_received = [next(other_frames)]
            server.process.kill()  # pyright: ignore[reportOptionalMemberAccess]
            received += _rest(frames)
            other_received += _rest(other_frames)
        with ServerProcess(data, "endless", "hello") as server:
            for run_id, seen in ((stream.run_id, received), (other.run_id, other_received)):
                kept = server.follow(run_id, format_="records").take(10**9)
                assert begins_with(joined("records", kept), joined("records", seen))
                assert kept[-1][1]["event"]["kind"] == "run_failed"
                assert kept[-1][1]["event"]["code"] == "interrupted"
                assert int(kept[-1][0]) > int(seen[-1][0])
                _, run = server.get(f"/runs/{run_id}")
                assert run["state"] == "failed"
            status, answer = server.post(
                "/chat", {"messages": [{"role": "user", "content": "hi"}], "session_id": session_id, "agent": "hello"}
            )
            assert (status, answer["message"]["content"]) == (200, "hello")


def begins_with(kept: list[Any], seen: list[Any]) -> bool:
    """Is all that was seen in the log, in that order? The last text may have gone on."""
    *before, last = seen
    same = kept[: len(before)] == before
    there = kept[len(before)]
    return same and (there == last or (there[0] == last[0] and there[1].startswith(last[1])))


def _rest(frames: Iterator[tuple[str, Any]]) -> list[tuple[str, Any]]:
    """What was on its way when the server died."""
    found: list[tuple[str, Any]] = []
    with suppress(OSError, AssertionError):  # a connection that is reset, or half a frame
        found.extend(frames)
    return found
