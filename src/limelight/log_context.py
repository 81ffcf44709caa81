"""Which run and session a line of the server's log is about.

Who begins to work for a run or a session says so once, with `logged_as`. Everything that is logged in that task, in
tasks that it starts and in threads that get its context is then about it, also what libraries of agents log that know
nothing of us. A line that knows better says it itself, with `extra=ids(…)`.
"""

import logging
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from types import MappingProxyType

FIELDS = ("run_id", "session_id", "agent", "error_id")

_ABOUT: ContextVar[Mapping[str, str]] = ContextVar("limelight_log_context", default=MappingProxyType({}))


def ids(*, run_id: str = "", session_id: str = "", agent: str = "", error_id: str = "") -> dict[str, str]:
    """What a line is about, as far as it is known."""
    known = {"run_id": run_id, "session_id": session_id, "agent": agent, "error_id": error_id}
    return {name: value for name, value in known.items() if value}


@contextmanager
def logged_as(about: Mapping[str, str]) -> Generator[None]:
    """Lines are about this meanwhile, and about what they were about before as far as this does not say it."""
    token = _ABOUT.set({**_ABOUT.get(), **about})
    try:
        yield
    finally:
        _ABOUT.reset(token)


def ids_of(line: logging.LogRecord) -> dict[str, str]:
    """What a line is about: as it says itself, else as the work in which it was written. Asked where it is written."""
    about = {**_ABOUT.get()}
    about.update((name, str(value)) for name in FIELDS if (value := getattr(line, name, None)))
    return about
