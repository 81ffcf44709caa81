"""Configures the log of a server process: text or JSON lines on stderr or in a file, without secrets.

Uncaught errors are logged too, because Python would write them to stderr unredacted, between the JSON lines.
"""

import logging
import os
import re
import sys
import threading
from collections.abc import Generator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType

import msgspec

from limelight.cli.view.sanitize import sanitize
from limelight.config import Settings
from limelight.errors import SetupError
from limelight.log_context import FIELDS, fields_of_record
from limelight.private_files import FILE_MODE, FOLDER_MODE, make_private
from limelight.redaction.rules import URL_CREDENTIALS, Redactor, make_redactor

log = logging.getLogger(__name__)
CREDENTIALS = (
    re.compile(r"(?i)\bbearer\s+[^\s\"',]+"),
    re.compile(r"\beyJ[\w-]+\.[\w-]+\.[\w-]*"),
    URL_CREDENTIALS,
)
"""Patterns of bearer tokens, JWTs, and names and passwords in URLs, which are redacted in log lines."""
VERBOSE_LIBRARIES = ("aiosqlite",)
"""Libraries whose level is at least INFO, because they log complete conversations at DEBUG."""


class TextFormatter(logging.Formatter):
    """Formats log records as text. Removes secrets and control characters, which errors of agents may contain."""

    def __init__(self, redactor: Redactor, *, with_time: bool) -> None:
        super().__init__("%(asctime)s %(levelname)s %(message)s" if with_time else "%(levelname)s %(message)s")
        self._redactor = redactor

    def format(self, record: logging.LogRecord) -> str:
        return sanitize(self._redactor.redact_text(super().format(record)))

    def formatMessage(self, record: logging.LogRecord) -> str:
        """Put the ids of the run and the session before the message, unless the message contains them."""
        context = fields_of_record(record)
        known = [context[name] for name in ("run_id", "session_id") if name in context]
        unnamed = [one for one in known if not re.search(rf"(?<!\w){re.escape(one)}(?!\w)", record.message)]
        if unnamed:
            record.message = f"[{' '.join(unnamed)}] {record.message}"
        return super().formatMessage(record)


class JsonFormatter(logging.Formatter):
    """Formats log records as one JSON object per line, with a fixed set of fields."""

    def __init__(self, redactor: Redactor) -> None:
        super().__init__()
        self._redactor = redactor

    def format(self, record: logging.LogRecord) -> str:
        context = fields_of_record(record)
        time = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        fields = {
            "time": time,
            "level": record.levelname,
            "logger": record.name,
            "message": record.getMessage(),
            **{name: context[name] for name in FIELDS if name in context},
        }
        if exception := self._exception(record):
            fields["exception"] = exception
        return msgspec.json.encode(
            {name: sanitize(self._redactor.redact_text(text)) for name, text in fields.items()}
        ).decode()

    def _exception(self, record: logging.LogRecord) -> str:
        raised = self.formatException(record.exc_info) if record.exc_info and record.exc_info[0] else record.exc_text
        stack = self.formatStack(record.stack_info) if record.stack_info else ""
        return "\n".join(part for part in (raised, stack) if part)


def check_log(settings: Settings) -> None:
    """Raise SetupError if the section `[log]` of the settings is invalid."""
    if settings.log.level.upper() not in logging.getLevelNamesMapping():
        place = settings.origin.place("log", "level")
        raise SetupError(f"{place}log.level is one of DEBUG, INFO, WARNING, ERROR, not {settings.log.level}")
    if settings.log.format not in ("text", "json"):
        place = settings.origin.place("log", "format")
        raise SetupError(f"{place}log.format is text or json, not {settings.log.format}")


def set_up_log(file: Path | None, settings: Settings) -> None:
    """Configure logging as the section `[log]` says. The log is written to `file`, or to stderr if `file` is None."""
    check_log(settings)
    if file is not None:
        file.parent.mkdir(mode=FOLDER_MODE, parents=True, exist_ok=True)
        file.touch(mode=FILE_MODE)
        make_private(file)
    handler = logging.StreamHandler() if file is None else logging.FileHandler(file)
    redactor = make_redactor(settings, *CREDENTIALS)
    if settings.log.format == "json":
        handler.setFormatter(JsonFormatter(redactor))
    else:
        handler.setFormatter(TextFormatter(redactor, with_time=file is not None or _stderr_needs_times()))
    logging.captureWarnings(True)  # otherwise Python writes warnings unredacted, between the JSON lines
    _log_uncaught_errors(with_excepthook=file is None)
    for name in VERBOSE_LIBRARIES:
        logging.getLogger(name).setLevel(logging.INFO)
    logging.basicConfig(level=settings.log.level.upper(), handlers=[handler])


def _stderr_needs_times() -> bool:
    """Whether log lines on stderr need a timestamp: not in a terminal or the systemd journal, which adds its own."""
    return not sys.stderr.isatty() and "JOURNAL_STREAM" not in os.environ


@contextmanager
def root_handlers_only() -> Generator[None]:
    """Context manager in which log records reach only the handlers of the root logger.

    Some frameworks install handlers that write to the terminal; those are not called.
    """
    previous = logging.Logger.callHandlers
    logging.Logger.callHandlers = _call_root_handlers
    try:
        yield
    finally:
        logging.Logger.callHandlers = previous


def _call_root_handlers(self: logging.Logger, record: logging.LogRecord) -> None:
    for handler in logging.root.handlers:
        if record.levelno >= handler.level:
            handler.handle(record)


def _log_uncaught_errors(*, with_excepthook: bool) -> None:
    """Log uncaught errors of threads and of `__del__` methods.

    With `with_excepthook`, also log the uncaught error that ends the process.
    """
    threading.excepthook = _log_thread_error
    sys.unraisablehook = _log_unraisable
    if with_excepthook:
        sys.excepthook = _log_fatal


def _log_thread_error(args: threading.ExceptHookArgs) -> None:
    if args.exc_value is None or issubclass(args.exc_type, SystemExit):  # SystemExit ends a thread without an error
        return
    name = args.thread.name if args.thread is not None else "(unknown)"
    log.error("uncaught error in the thread %s, which has ended", name, exc_info=args.exc_value)


def _log_unraisable(args: "sys.UnraisableHookArgs") -> None:
    if args.exc_value is None:
        return
    try:
        where = f"{args.object!r}"
    except Exception:  # the object is partly destroyed
        where = f"a {type(args.object).__name__}"
    log.error("%s %s", args.err_msg or "uncaught error in", where, exc_info=args.exc_value)


def _log_fatal(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    if issubclass(kind, KeyboardInterrupt):
        sys.__excepthook__(kind, error, trace)
    else:
        log.critical("uncaught error, which ends the process", exc_info=error)
