"""The log of servers in processes: JSON and text lines, uncaught errors, no secrets."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from limelight.redaction.rules import REDACTED
from tests.system.processes.server_process import ServerProcess


def json_lines(server: ServerProcess) -> list[dict[str, Any]]:
    """The log of a server, without the lines of its stdout."""
    return [json.loads(text) for text in server.log.splitlines() if not text.startswith("Limelight ")]


@pytest.mark.requirement("log-ids")
def test_server_logs_json_lines_with_run_session_and_error_id(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Lines of libraries have the run of their agent; the `error_id` of a client is in the log."""
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
    written = json_lines(server)
    of_library = [line for line in written if line["logger"] == "beekeeper" and line["run_id"] == well.run_id]
    assert [(line["message"], line["level"]) for line in of_library] == [
        ("smoke", "INFO"),
        (f"the hive says {REDACTED}", "WARNING"),
    ]
    assert {(line["session_id"], line["agent"]) for line in of_library} == {("one", "telling")}
    (failed,) = [line for line in written if line.get("error_id") == shown["error_id"]]
    assert (failed["run_id"], failed["session_id"], failed["level"]) == (broken.run_id, "two", "ERROR")
    assert f"ValueError: two\nlines of break {REDACTED}" in failed["exception"]
    assert "honey-honey-honey" not in server.log

    with ServerProcess(tmp_path / "data", "quiet", **variables) as server:
        _, run = server.get(f"/runs/{cut_off.run_id}")
        waits = server.ask("go", agent="quiet", session_id="four")
        next(iter(waits))
        server.terminate()
        (ended,) = [data["data"] for _, data in waits if data["type"] == "error"]
    found = {line["error_id"]: line for line in json_lines(server) if "error_id" in line}
    sealed = found[run["error"]["error_id"]]
    assert (sealed["run_id"], sealed["session_id"], sealed["agent"]) == (cut_off.run_id, "three", "quiet")
    assert ended["error_id"] in found


def test_server_logs_uncaught_errors_as_json_lines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HIVE_API_KEY", "honey-honey-honey")
    with ServerProcess(tmp_path / "data", "careless", LIMELIGHT_LOG_FORMAT="json") as server:
        assert [data["type"] for _, data in server.ask("honey-honey-honey")][-1] == "done"
        server.until_it_says("beehive")
        server.until_it_says("Swarm.__del__")
        server.kill()
    exceptions = {line["message"]: line["exception"] for line in json_lines(server)}
    in_thread = next(exception for message, exception in exceptions.items() if "in the thread beehive" in message)
    ignored = next(exception for message, exception in exceptions.items() if "Swarm.__del__" in message)
    assert in_thread.endswith(f"ValueError: {REDACTED}")
    assert ignored.endswith(f"OSError: {REDACTED}")
    assert "honey-honey-honey" not in server.log


def test_process_logs_its_fatal_error_as_a_json_line(tmp_path: Path) -> None:
    program = (
        "import warnings\n"
        "from limelight.cli.log_setup import set_up_log\n"
        "from limelight.config import load_settings\n"
        "set_up_log(None, load_settings(environ={'LIMELIGHT_LOG_FORMAT': 'json'}))\n"
        "warnings.warn('bees ahead')\n"
        "raise ValueError('no honey')\n"
    )
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False)
    warned, broke = [json.loads(text) for text in ended.stderr.splitlines()]
    assert "bees ahead" in warned["message"]
    assert (ended.returncode, broke["level"]) == (1, "CRITICAL")
    assert broke["exception"].endswith("ValueError: no honey")


def test_server_logs_text_lines_with_run_and_session(tmp_path: Path) -> None:
    with ServerProcess(tmp_path / "data", "telling") as server:
        stream = server.ask("hum", session_id="one")
        assert [data["type"] for _, data in stream][-1] == "done"
        assert f"WARNING [{stream.run_id} one] the hive says hum\n" in server.log
