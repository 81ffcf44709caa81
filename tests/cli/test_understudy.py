"""`limelight understudy` as a person meets it: one line to copy, then it answers; a mistake is one line too."""

import socket
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import openai
import pytest

SCRIPT = "- steps: [{text: As it is written.}]\n"


@contextmanager
def understudy(*options: str) -> Generator[tuple[dict[str, str], "subprocess.Popen[str]"]]:
    """What its line says, and the process."""
    command = [sys.executable, "-m", "limelight", "understudy", *options]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            yield dict(part.split("=", 1) for part in line.split()), process
        finally:
            process.kill()


def ask(said: dict[str, str]) -> str | None:
    with openai.OpenAI(base_url=said["OPENAI_BASE_URL"], api_key=said["OPENAI_API_KEY"], max_retries=0) as client:
        reply = client.chat.completions.create(model="any", messages=[{"role": "user", "content": "Hello"}])
    return reply.choices[0].message.content


def test_it_improvises_on_a_free_port() -> None:
    with understudy("--port", "0") as (said, process):
        assert "stand-in" in (ask(said) or "")
        process.terminate()
        assert process.wait(20) == 0
        assert process.stderr is not None
        assert process.stderr.read() == ""


def test_it_plays_a_script_with_a_key_of_ones_own(tmp_path: Path) -> None:
    (tmp_path / "s.yaml").write_text(SCRIPT)
    with understudy("--port", "0", "--script", str(tmp_path / "s.yaml"), "--key", "sesame") as (said, _):
        assert said["OPENAI_API_KEY"] == "sesame"
        assert ask(said) == "As it is written."
        with pytest.raises(openai.AuthenticationError):
            ask({**said, "OPENAI_API_KEY": "wrong"})


def refused(*options: str) -> str:
    command = [sys.executable, "-m", "limelight", "understudy", *options]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert ended.returncode == 2
    assert ended.stdout == ""
    (line,) = ended.stderr.splitlines()
    return line


def test_a_taken_port() -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        line = refused("--port", str(port))
    assert line.startswith(f"limelight: port {port} is taken")
    assert f"limelight understudy --port {port + 1}" in line


def test_a_wrong_script(tmp_path: Path) -> None:
    (tmp_path / "s.yaml").write_text("- steps: [{txt: a}]")
    line = refused("--script", str(tmp_path / "s.yaml"))
    assert "s.yaml: turn 1, step 1 has no key `txt`: did you mean `text`?" in line
