"""What nobody catches, in the log: errors in threads that agents start, in `__del__`, at the end of a command.

Python would write them to standard error as they are, between the objects of a log for machines, and with whatever
secret is in them.
"""

import logging
import sys
import threading
from types import TracebackType

log = logging.getLogger(__name__)


def log_uncaught(*, ends_too: bool) -> None:
    """From now on they are logged. `ends_too`: also what ends the process, if the log is where somebody looks then."""
    threading.excepthook = _in_thread
    sys.unraisablehook = _ignored
    if ends_too:
        sys.excepthook = _at_the_end


def _in_thread(told: threading.ExceptHookArgs) -> None:
    if told.exc_value is None or issubclass(told.exc_type, SystemExit):  # which ends a thread, and is no error
        return
    name = told.thread.name if told.thread is not None else "that is gone"
    log.error("an error in the thread %s, which has ended", name, exc_info=_whole(told.exc_value))


def _ignored(told: "sys.UnraisableHookArgs") -> None:
    if told.exc_value is None:
        return
    try:
        where = f"{told.object!r}"
    except Exception:  # an object that is half gone
        where = f"a {type(told.object).__name__}"
    log.error("%s %s", told.err_msg or "an error that nobody can catch, in", where, exc_info=_whole(told.exc_value))


def _at_the_end(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    if issubclass(kind, KeyboardInterrupt):
        sys.__excepthook__(kind, error, trace)
    else:
        log.critical("an error that nobody has caught ends the process", exc_info=(kind, error, trace))


def _whole(error: BaseException) -> tuple[type[BaseException], BaseException, TracebackType | None]:
    return type(error), error, error.__traceback__
