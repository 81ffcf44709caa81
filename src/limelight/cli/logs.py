"""The log of a server that a command runs: harmless for a terminal, without secrets, on standard error or in a file."""

import logging
import os
import re
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from limelight.cli.view.safe import safe
from limelight.config import Settings
from limelight.errors import SetupError
from limelight.hiding import Hiding
from limelight.server.hidden import hiding_of

CREDENTIALS = (re.compile(r"(?i)\bbearer\s+[^\s\"',]+"), re.compile(r"\beyJ[\w-]+\.[\w-]+\.[\w-]*"))
"""What is sent to prove who somebody is, whoever it is for."""


TALKATIVE = ("aiosqlite",)
"""Libraries that would log whole conversations at DEBUG."""


class SafeFormatter(logging.Formatter):
    """What agents raise ends up in the log too, and may contain escape sequences, and what they were told in secret."""

    def __init__(self, layout: str, hiding: Hiding) -> None:
        super().__init__(layout)
        self._hiding = hiding

    def format(self, record: logging.LogRecord) -> str:
        return safe(self._hiding.text(super().format(record)))


def log_to(file: Path | None, settings: Settings) -> None:
    """Log to a file, or to standard error. LIMELIGHT_LOG is the level. What the settings hide is not told."""
    level = os.environ.get("LIMELIGHT_LOG", "WARNING").upper()
    if level not in logging.getLevelNamesMapping():
        raise SetupError(f"LIMELIGHT_LOG is one of DEBUG, INFO, WARNING, ERROR, not {level}")
    if file is not None:
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    handler = logging.StreamHandler() if file is None else logging.FileHandler(file)
    layout = "%(levelname)s %(message)s" if file is None else "%(asctime)s %(levelname)s %(message)s"
    handler.setFormatter(SafeFormatter(layout, hiding_of(settings, *CREDENTIALS)))
    for name in TALKATIVE:
        logging.getLogger(name).setLevel(logging.INFO)
    logging.basicConfig(level=level, handlers=[handler])


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
