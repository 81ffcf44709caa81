"""The log of a server that a command runs: harmless for a terminal, on standard error or in a file."""

import logging
import os
from pathlib import Path

from limelight.cli.view.safe import safe
from limelight.errors import SetupError


class SafeFormatter(logging.Formatter):
    """What agents raise ends up in the log too, and may contain escape sequences."""

    def format(self, record: logging.LogRecord) -> str:
        return safe(super().format(record))


def log_to(file: Path | None) -> None:
    """Log to a file, or to standard error. LIMELIGHT_LOG is the level."""
    level = os.environ.get("LIMELIGHT_LOG", "WARNING").upper()
    if level not in logging.getLevelNamesMapping():
        raise SetupError(f"LIMELIGHT_LOG is one of DEBUG, INFO, WARNING, ERROR, not {level}")
    if file is not None:
        file.parent.mkdir(parents=True, exist_ok=True)
    handler = logging.StreamHandler() if file is None else logging.FileHandler(file)
    handler.setFormatter(
        SafeFormatter("%(levelname)s %(message)s" if file is None else "%(asctime)s %(levelname)s %(message)s")
    )
    logging.basicConfig(level=level, handlers=[handler])


def gather_logs() -> None:
    """Let the loggers of frameworks, some of which write to the terminal themselves, write where ours do."""
    for name in list(logging.root.manager.loggerDict):
        logger = logging.getLogger(name)
        if logger.handlers:
            logger.handlers.clear()
            logger.propagate = True
