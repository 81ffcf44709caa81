"""Lines of the log, for people and for machines: what they name, and what they keep to themselves."""

import json
import logging
import re
import subprocess
import sys
import threading
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from limelight.cli.log_format import JsonLines, TextLines
from limelight.cli.log_setup import log_to
from limelight.config import load_settings
from limelight.errors import SetupError
from limelight.log_context import ids, logged_as
from limelight.redaction.rules import HIDDEN, Hiding
from tests.system.processes.server_process import ServerProcess

SECRET = 'sk-"quoted"\nand in two lines'
HIDING = Hiding([re.compile(r"card \d+")], secrets=[SECRET])
ABOUT = ids(run_id="run_1", session_id="s", agent="demo")


def line(message: str, *args: object, raised: BaseException | None = None, **extra: str) -> logging.LogRecord:
    info = (type(raised), raised, raised.__traceback__) if raised is not None else None
    return logging.getLogger("bees").makeRecord("bees", logging.ERROR, "", 0, message, args, info, extra=extra)


def read(record: logging.LogRecord) -> dict[str, Any]:
    written = JsonLines(HIDING).format(record)
    assert "\n" not in written
    return json.loads(written)


def test_an_object_says_what_is_known_and_no_more() -> None:
    plain = read(line("%d bees", 3))
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", plain.pop("time"))
    assert plain == {"level": "ERROR", "logger": "bees", "message": "3 bees"}
    with logged_as(ABOUT):
        known = read(line("broke, err_1", error_id="err_1"))
    assert {name: known[name] for name in (*ABOUT, "error_id")} == {**ABOUT, "error_id": "err_1"}


def test_an_object_has_the_story_of_an_exception() -> None:
    try:
        raise ValueError(f"two\nlines with {SECRET}")
    except ValueError as error:
        told = read(line("broke", raised=error))
    assert told["exception"].startswith("Traceback (most recent call last):\n")
    assert told["exception"].endswith(f"ValueError: two\nlines with {HIDDEN}")


def test_secrets_and_what_moves_a_cursor_are_in_no_field() -> None:
    with logged_as(ids(session_id=f"s {SECRET}")):
        told = read(line("%s of card 1234 \x1b[2J\u202e", SECRET))
    assert told["message"] == f"{HIDDEN} of {HIDDEN} ␛[2J\\u202e"
    assert told["session_id"] == f"s {HIDDEN}"


def test_a_line_for_people_names_what_its_message_does_not() -> None:
    text = TextLines(HIDING, timed=False)
    assert text.format(line("hm")) == "ERROR hm"
    with logged_as(ABOUT):
        assert text.format(line("hm %s", SECRET)) == f"ERROR [run_1 s] hm {HIDDEN}"
        assert text.format(line("run run_1 failed in x")) == "ERROR [s] run run_1 failed in x"
        assert text.format(line("run run_1 of s failed")) == "ERROR run run_1 of s failed"
    assert re.fullmatch(r"\d{4}-\d\d-\d\d .* ERROR hm", TextLines(HIDING, timed=True).format(line("hm")))


@contextmanager
def bare_root() -> Generator[None]:
    """A root logger without handlers, as a process has it at its start."""
    root = logging.getLogger()
    handlers, level = root.handlers, root.level
    hooks = threading.excepthook, sys.unraisablehook, sys.excepthook
    root.handlers = []
    try:
        yield
    finally:
        for handler in root.handlers:
            handler.close()
        root.handlers = handlers
        root.setLevel(level)
        logging.captureWarnings(False)
        threading.excepthook, sys.unraisablehook, sys.excepthook = hooks


def test_the_file_can_choose_form_and_level(tmp_path: Path) -> None:
    config = tmp_path / "config.toml"
    config.write_text('[log]\nlevel = "info"\nformat = "json"\n')
    with bare_root():
        log_to(tmp_path / "run.log", load_settings(config, environ={}))
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
def test_a_level_or_form_that_is_none(tmp_path: Path, environ: dict[str, str], hint: str) -> None:
    with pytest.raises(SetupError, match=re.escape(hint)):
        log_to(tmp_path / "run.log", load_settings(environ=environ))


def objects(server: ServerProcess) -> list[dict[str, Any]]:
    """The log, of which every line but those on standard output is an object."""
    return [json.loads(text) for text in server.log.splitlines() if not text.startswith("Limelight ")]


def test_a_server_that_writes_objects(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Lines of an agent's libraries are the run's, an error that a client is shown is found by its id."""
    monkeypatch.setenv("HIVE_API_KEY", "honey-honey-honey")
    variables: Any = {"LIMELIGHT_LOG_FORMAT": "json", "LIMELIGHT_LOG": "INFO"}
    with ServerProcess(tmp_path / "data", "telling", "quiet", **variables) as server:
        well = server.ask("honey-honey-honey", agent="telling", session_id="one")
        assert [data["type"] for _, data in well][-1] == "done"
        broken = server.ask("break honey-honey-honey", agent="telling", session_id="two")
        (shown,) = [data["data"] for _, data in broken if data["type"] == "error"]
        cut_off = server.ask("go", agent="quiet", session_id="three")
        next(iter(cut_off))
        server.kill()
    written = objects(server)
    of_the_hive = [line for line in written if line["logger"] == "beekeeper" and line["run_id"] == well.run_id]
    assert [(line["message"], line["level"]) for line in of_the_hive] == [
        ("smoke", "INFO"),
        (f"the hive says {HIDDEN}", "WARNING"),
    ]
    assert {(line["session_id"], line["agent"]) for line in of_the_hive} == {("one", "telling")}
    (failed,) = [line for line in written if line.get("error_id") == shown["error_id"]]
    assert (failed["run_id"], failed["session_id"], failed["level"]) == (broken.run_id, "two", "ERROR")
    assert f"ValueError: two\nlines of break {HIDDEN}" in failed["exception"]
    assert "honey-honey-honey" not in server.log

    with ServerProcess(tmp_path / "data", "quiet", **variables) as server:
        _, run = server.get(f"/runs/{cut_off.run_id}")
        waits = server.ask("go", agent="quiet", session_id="four")
        next(iter(waits))
        server.terminate(20)
        (ended,) = [data["data"] for _, data in waits if data["type"] == "error"]
    found = {line["error_id"]: line for line in objects(server) if "error_id" in line}
    sealed = found[run["error"]["error_id"]]
    assert (sealed["run_id"], sealed["session_id"], sealed["agent"]) == (cut_off.run_id, "three", "quiet")
    assert ended["error_id"] in found


def test_what_nobody_catches_is_an_object_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HIVE_API_KEY", "honey-honey-honey")
    with ServerProcess(tmp_path / "data", "careless", LIMELIGHT_LOG_FORMAT="json") as server:
        assert [data["type"] for _, data in server.ask("honey-honey-honey")][-1] == "done"
        server.until_it_says("beehive")
        server.until_it_says("Swarm.__del__")
        server.kill()
    told = {line["message"]: line["exception"] for line in objects(server)}
    in_thread = next(story for message, story in told.items() if "in the thread beehive" in message)
    ignored = next(story for message, story in told.items() if "Swarm.__del__" in message)
    assert in_thread.endswith(f"ValueError: {HIDDEN}")
    assert ignored.endswith(f"OSError: {HIDDEN}")
    assert "honey-honey-honey" not in server.log


def test_a_process_that_breaks_leaves_an_object(tmp_path: Path) -> None:
    program = (
        "import warnings\n"
        "from limelight.cli.log_setup import log_to\n"
        "from limelight.config import load_settings\n"
        "log_to(None, load_settings(environ={'LIMELIGHT_LOG_FORMAT': 'json'}))\n"
        "warnings.warn('bees ahead')\n"
        "raise ValueError('no honey')\n"
    )
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False)
    warned, broke = [json.loads(text) for text in ended.stderr.splitlines()]
    assert "bees ahead" in warned["message"]
    assert (ended.returncode, broke["level"]) == (1, "CRITICAL")
    assert broke["exception"].endswith("ValueError: no honey")


def test_a_server_that_writes_for_people_names_the_run_too(tmp_path: Path) -> None:
    with ServerProcess(tmp_path / "data", "telling") as server:
        stream = server.ask("hum", session_id="one")
        assert [data["type"] for _, data in stream][-1] == "done"
        assert f"WARNING [{stream.run_id} one] the hive says hum\n" in server.log
