"""Adds the ids of the run, the session, the agent and the error to log records.

The code that starts to work for a run or a session binds the fields once, with `bind_log_fields`. They apply to
all log records of that task, in tasks that it starts and in threads that get its context, also to records of
libraries that agents use. A single log call can add fields with `extra=log_fields(…)`.
"""

import logging
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from types import MappingProxyType

FIELDS = ("run_id", "session_id", "agent", "error_id")

_BOUND: ContextVar[Mapping[str, str]] = ContextVar("limelight_log_context", default=MappingProxyType({}))


def log_fields(*, run_id: str = "", session_id: str = "", agent: str = "", error_id: str = "") -> dict[str, str]:
    """Return the non-empty fields as a dict, for `bind_log_fields` or as `extra` of a log call."""
    fields = {"run_id": run_id, "session_id": session_id, "agent": agent, "error_id": error_id}
    return {name: value for name, value in fields.items() if value}


@contextmanager
def bind_log_fields(fields: Mapping[str, str]) -> Generator[None]:
    """Add fields to all log records within a `with` block. They override those of an outer block."""
    token = _BOUND.set({**_BOUND.get(), **fields})
    try:
        yield
    finally:
        _BOUND.reset(token)


def fields_of_record(record: logging.LogRecord) -> dict[str, str]:
    """Return the fields of a log record: those in its `extra`, and those bound in the current context."""
    fields = {**_BOUND.get()}
    fields.update((name, str(value)) for name in FIELDS if (value := getattr(record, name, None)))
    return fields
