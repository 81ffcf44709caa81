"""How a line of the log is written: for people, or as JSON for machines. Both are harmless and without secrets."""

import logging
import re
from datetime import UTC, datetime

import msgspec

from limelight.cli.view.sanitize import safe
from limelight.log_context import FIELDS, ids_of
from limelight.redaction.rules import Hiding


class TextLines(logging.Formatter):
    """What agents raise ends up in the log too, and may contain escape sequences, and what they were told in secret."""

    def __init__(self, hiding: Hiding, *, timed: bool) -> None:
        super().__init__("%(asctime)s %(levelname)s %(message)s" if timed else "%(levelname)s %(message)s")
        self._hiding = hiding

    def format(self, record: logging.LogRecord) -> str:
        return safe(self._hiding.text(super().format(record)))

    def formatMessage(self, record: logging.LogRecord) -> str:
        """With the run and the session in front, unless the message names them."""
        about = ids_of(record)
        known = [about[name] for name in ("run_id", "session_id") if name in about]
        unnamed = [one for one in known if not re.search(rf"(?<!\w){re.escape(one)}(?!\w)", record.message)]
        if unnamed:
            record.message = f"[{' '.join(unnamed)}] {record.message}"
        return super().formatMessage(record)


class JsonLines(logging.Formatter):
    """An object a line. What is not known of a line is left out."""

    def __init__(self, hiding: Hiding) -> None:
        super().__init__()
        self._hiding = hiding

    def format(self, record: logging.LogRecord) -> str:
        about = ids_of(record)
        line = {
            "time": _written(record.created),
            "level": record.levelname,
            "logger": record.name,
            "message": record.getMessage(),
            **{name: about[name] for name in FIELDS if name in about},
        }
        if story := self._story(record):
            line["exception"] = story
        shown = {name: safe(self._hiding.text(value)) for name, value in line.items()}
        return msgspec.json.encode(shown).decode()

    def _story(self, record: logging.LogRecord) -> str:
        raised = self.formatException(record.exc_info) if record.exc_info and record.exc_info[0] else record.exc_text
        stack = self.formatStack(record.stack_info) if record.stack_info else ""
        return "\n".join(part for part in (raised, stack) if part)


def _written(seconds: float) -> str:
    """RFC 3339, in UTC."""
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
