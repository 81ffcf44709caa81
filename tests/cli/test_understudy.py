"""`limelight understudy`: refusals in one line."""

import socket
from pathlib import Path

from tests.cli.runner import limelight


def test_understudy_refuses_a_used_port_with_a_hint(tmp_path: Path) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        result = limelight("understudy", "--port", str(port), folder=tmp_path, code=2)
    assert result.stdout == ""
    (line,) = result.stderr.splitlines()
    assert line.startswith(f"limelight: port {port} is taken")
    assert f"limelight understudy --port {port + 1}" in line


def test_understudy_refuses_an_invalid_script_with_a_hint(tmp_path: Path) -> None:
    (tmp_path / "s.yaml").write_text("- steps: [{txt: a}]")
    (line,) = limelight("understudy", "--script", "s.yaml", folder=tmp_path, code=2).stderr.splitlines()
    assert "s.yaml: turn 1, step 1 has no key `txt`: did you mean `text`?" in line
