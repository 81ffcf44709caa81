"""Log lines as text and as JSON: their fields, and the secrets that they leave out."""

import json
import logging
import re
from pathlib import Path
from typing import Any

import pytest

from limelight.cli.log_setup import CREDENTIALS, JsonFormatter, TextFormatter, set_up_log
from limelight.config import load_settings
from limelight.errors import SetupError
from limelight.log_context import bind_log_fields, log_fields
from limelight.redaction.rules import REDACTED, Redactor
from tests.cli.runner import own_logging

SECRET = 'sk-"quoted"\nand in two lines'
HIDING = Redactor([re.compile(r"card \d+")], secrets=[SECRET])
CONTEXT = log_fields(run_id="run_1", session_id="s", agent="demo")


def log_record(message: str, *args: object, raised: BaseException | None = None, **extra: str) -> logging.LogRecord:
    info = (type(raised), raised, raised.__traceback__) if raised is not None else None
    return logging.getLogger("bees").makeRecord("bees", logging.ERROR, "", 0, message, args, info, extra=extra)


def read(record: logging.LogRecord) -> dict[str, Any]:
    written = JsonFormatter(HIDING).format(record)
    assert "\n" not in written
    return json.loads(written)


def test_json_line_has_the_known_fields_only() -> None:
    plain = read(log_record("%d bees", 3))
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", plain.pop("time"))
    assert plain == {"level": "ERROR", "logger": "bees", "message": "3 bees"}
    with bind_log_fields(CONTEXT):
        known = read(log_record("broke, err_1", error_id="err_1"))
    assert {name: known[name] for name in (*CONTEXT, "error_id")} == {**CONTEXT, "error_id": "err_1"}


def test_json_line_has_the_traceback_of_an_exception() -> None:
    try:
        raise ValueError(f"two\nlines with {SECRET}")
    except ValueError as error:
        line = read(log_record("broke", raised=error))
    assert line["exception"].startswith("Traceback (most recent call last):\n")
    assert line["exception"].endswith(f"ValueError: two\nlines with {REDACTED}")


def test_json_line_has_no_secrets_and_control_characters() -> None:
    with bind_log_fields(log_fields(session_id=f"s {SECRET}")):
        line = read(log_record("%s of card 1234 \x1b[2J\u202e", SECRET))
    assert line["message"] == f"{REDACTED} of {REDACTED} ␛[2J\\u202e"
    assert line["session_id"] == f"s {REDACTED}"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("no answer from postgres://ann:secret@db/shop", f"no answer from postgres://{REDACTED}@db/shop"),
        ("'redis://:p@ss@host:1', then x@y", f"'redis://{REDACTED}@host:1', then x@y"),
        ("http://127.0.0.1:8000/a@b is taken", "http://127.0.0.1:8000/a@b is taken"),
        ("path: /tmp, pattern: a@b, compat: c", "path: /tmp, pattern: a@b, compat: c"),
    ],
)
def test_line_has_no_credentials_of_urls(text: str, expected: str) -> None:
    line = TextFormatter(Redactor(CREDENTIALS), with_time=False).format(log_record(text))
    assert line == f"ERROR {expected}"


def test_text_line_names_run_and_session_unless_the_message_does() -> None:
    text = TextFormatter(HIDING, with_time=False)
    assert text.format(log_record("hm")) == "ERROR hm"
    with bind_log_fields(CONTEXT):
        assert text.format(log_record("hm %s", SECRET)) == f"ERROR [run_1 s] hm {REDACTED}"
        assert text.format(log_record("run run_1 failed in x")) == "ERROR [s] run run_1 failed in x"
        assert text.format(log_record("run run_1 of s failed")) == "ERROR run run_1 of s failed"
    assert re.fullmatch(r"\d{4}-\d\d-\d\d .* ERROR hm", TextFormatter(HIDING, with_time=True).format(log_record("hm")))


def test_configuration_sets_log_format_and_level(tmp_path: Path) -> None:
    config = tmp_path / "config.toml"
    config.write_text('[log]\nlevel = "info"\nformat = "json"\n')
    with own_logging():
        set_up_log(tmp_path / "run.log", load_settings(config, environ={}))
        logging.getLogger("bees").info("hum")
        logging.getLogger("bees").debug("not this")
    (written,) = (tmp_path / "run.log").read_text().splitlines()
    assert json.loads(written)["message"] == "hum"


@pytest.mark.parametrize(
    ("environ", "hint"),
    [
        ({"LIMELIGHT_LOG": "loud"}, "LIMELIGHT_LOG, which sets `log.level`: log.level is one of DEBUG, INFO"),
        (
            {"LIMELIGHT_LOG_FORMAT": "xml"},
            "LIMELIGHT_LOG_FORMAT, which sets `log.format`: log.format is text or json, not xml",
        ),
    ],
)
def test_invalid_log_level_or_format_is_refused(tmp_path: Path, environ: dict[str, str], hint: str) -> None:
    with pytest.raises(SetupError, match=re.escape(hint)):
        set_up_log(tmp_path / "run.log", load_settings(environ=environ))
