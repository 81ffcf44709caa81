"""Fields of log records: bound by a block, inherited by tasks and threads, overridden by the record."""

import asyncio
import logging

from limelight.log_context import bind_log_fields, fields_of_record, log_fields


def make_record(**extra: object) -> logging.LogRecord:
    return logging.getLogger("x").makeRecord("x", logging.INFO, "", 0, "hm", (), None, extra=extra)


def test_records_have_no_fields_by_default() -> None:
    assert fields_of_record(make_record()) == {}
    assert log_fields(run_id="", agent="demo") == {"agent": "demo"}


def test_inner_fields_override_outer_ones_and_the_record_overrides_both() -> None:
    with bind_log_fields(log_fields(session_id="s", run_id="run_1")):
        with bind_log_fields(log_fields(run_id="run_2", agent="demo")):
            assert fields_of_record(make_record()) == {"session_id": "s", "run_id": "run_2", "agent": "demo"}
            assert fields_of_record(make_record(run_id="run_3", error_id="err_1", run_name="x")) == {
                "session_id": "s",
                "run_id": "run_3",
                "agent": "demo",
                "error_id": "err_1",
            }
        assert fields_of_record(make_record(session_id=None)) == {"session_id": "s", "run_id": "run_1"}
    assert fields_of_record(make_record()) == {}


async def test_tasks_and_threads_inherit_bound_fields() -> None:
    may_end = asyncio.Event()

    async def other() -> dict[str, str]:
        await may_end.wait()
        return fields_of_record(make_record())

    neighbour = asyncio.create_task(other())
    with bind_log_fields(log_fields(run_id="run_1")):
        child = asyncio.create_task(other())
        assert await asyncio.to_thread(lambda: fields_of_record(make_record())) == {"run_id": "run_1"}
    may_end.set()
    assert await child == {"run_id": "run_1"}
    assert await neighbour == {}
