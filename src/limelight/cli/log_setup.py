"""The log of a server that a command runs: harmless for a terminal, without secrets, on standard error or in a file."""

import logging
import os
import re
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from limelight.cli.excepthook import log_uncaught
from limelight.cli.log_format import JsonLines, TextLines
from limelight.config import Settings
from limelight.errors import SetupError
from limelight.redaction.settings import hiding_of

CREDENTIALS = (re.compile(r"(?i)\bbearer\s+[^\s\"',]+"), re.compile(r"\beyJ[\w-]+\.[\w-]+\.[\w-]*"))
"""What is sent to prove who somebody is, whoever it is for."""


TALKATIVE = ("aiosqlite",)
"""Libraries that would log whole conversations at DEBUG."""


def check_log(settings: Settings) -> None:
    """Raises SetupError for a `[log]` that cannot be."""
    if settings.log.level.upper() not in logging.getLevelNamesMapping():
        place = settings.origin.place("log", "level")
        raise SetupError(f"{place}log.level is one of DEBUG, INFO, WARNING, ERROR, not {settings.log.level}")
    if settings.log.format not in ("text", "json"):
        place = settings.origin.place("log", "format")
        raise SetupError(f"{place}log.format is text or json, not {settings.log.format}")


def log_to(file: Path | None, settings: Settings) -> None:
    """Log to a file, or to standard error, as `[log]` wants it. What the settings hide is not told."""
    check_log(settings)
    if file is not None:
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    handler = logging.StreamHandler() if file is None else logging.FileHandler(file)
    hiding = hiding_of(settings, *CREDENTIALS)
    as_json = settings.log.format == "json"
    handler.setFormatter(JsonLines(hiding) if as_json else TextLines(hiding, timed=file is not None or _needs_times()))
    logging.captureWarnings(True)  # Python would write them between the objects, and with all secrets
    log_uncaught(ends_too=file is None)
    for name in TALKATIVE:
        logging.getLogger(name).setLevel(logging.INFO)
    logging.basicConfig(level=settings.log.level.upper(), handlers=[handler])


def _needs_times() -> bool:
    """Whether lines are read later, and nobody else says when they were written."""
    return not sys.stderr.isatty() and "JOURNAL_STREAM" not in os.environ


@contextmanager
def gathered_logs() -> Generator[None]:
    """All loggers write where ours do. Some frameworks write to the terminal themselves, whenever they are loaded."""
    before = logging.Logger.callHandlers
    logging.Logger.callHandlers = _to_the_root
    try:
        yield
    finally:
        logging.Logger.callHandlers = before


def _to_the_root(self: logging.Logger, record: logging.LogRecord) -> None:
    for handler in logging.root.handlers:
        if record.levelno >= handler.level:
            handler.handle(record)
