"""`limelight understudy` in a process: it prints its address and key, and answers."""

import subprocess
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import openai
import pytest

from tests.support.wait import DEADLINE
from tests.system.commands.command_process import command

SCRIPT = "- steps: [{text: As it is written.}]\n"


@contextmanager
def understudy(*options: str) -> Generator[tuple[dict[str, str], "subprocess.Popen[str]"]]:
    """The variables that it prints, and its process."""
    with subprocess.Popen(
        command("understudy", *options), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            yield dict(part.split("=", 1) for part in line.split()), process
        finally:
            process.kill()


def ask(variables: dict[str, str]) -> str | None:
    with openai.OpenAI(
        base_url=variables["OPENAI_BASE_URL"], api_key=variables["OPENAI_API_KEY"], max_retries=0
    ) as client:
        reply = client.chat.completions.create(model="any", messages=[{"role": "user", "content": "Hello"}])
    return reply.choices[0].message.content


def test_understudy_improvises_and_exits_with_0_on_sigterm() -> None:
    with understudy("--port", "0") as (variables, process):
        assert "stand-in" in (ask(variables) or "")
        process.terminate()
        assert process.wait(DEADLINE) == 0
        assert process.stderr is not None
        assert process.stderr.read() == ""


def test_understudy_plays_a_script_for_the_given_key(tmp_path: Path) -> None:
    (tmp_path / "s.yaml").write_text(SCRIPT)
    with understudy("--port", "0", "--script", str(tmp_path / "s.yaml"), "--key", "sesame") as (variables, _):
        assert variables["OPENAI_API_KEY"] == "sesame"
        assert ask(variables) == "As it is written."
        with pytest.raises(openai.AuthenticationError):
            ask({**variables, "OPENAI_API_KEY": "wrong"})
