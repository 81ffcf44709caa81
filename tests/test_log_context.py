"""What a line of the log is about: as it says itself, else as the work in which it was written."""

import asyncio
import logging

from limelight.log_context import ids, ids_of, logged_as


def line(**extra: object) -> logging.LogRecord:
    return logging.getLogger("x").makeRecord("x", logging.INFO, "", 0, "hm", (), None, extra=extra)


def test_nothing_is_known_of_most_lines() -> None:
    assert ids_of(line()) == {}
    assert ids(run_id="", agent="demo") == {"agent": "demo"}


def test_the_inner_work_counts_and_the_line_itself_most() -> None:
    with logged_as(ids(session_id="s", run_id="run_1")):
        with logged_as(ids(run_id="run_2", agent="demo")):
            assert ids_of(line()) == {"session_id": "s", "run_id": "run_2", "agent": "demo"}
            assert ids_of(line(run_id="run_3", error_id="err_1", run_name="x")) == {
                "session_id": "s",
                "run_id": "run_3",
                "agent": "demo",
                "error_id": "err_1",
            }
        assert ids_of(line(session_id=None)) == {"session_id": "s", "run_id": "run_1"}
    assert ids_of(line()) == {}


async def test_tasks_and_threads_of_the_work_belong_to_it_and_others_do_not() -> None:
    may_end = asyncio.Event()

    async def other() -> dict[str, str]:
        await may_end.wait()
        return ids_of(line())

    neighbour = asyncio.create_task(other())
    with logged_as(ids(run_id="run_1")):
        child = asyncio.create_task(other())
        assert await asyncio.to_thread(lambda: ids_of(line())) == {"run_id": "run_1"}
    may_end.set()
    assert await child == {"run_id": "run_1"}
    assert await neighbour == {}
