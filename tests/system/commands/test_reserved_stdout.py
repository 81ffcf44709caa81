"""`limelight run` in a process: standard output has Records only, whatever the code of an agent prints."""

import json
import subprocess
from pathlib import Path

import pytest

from tests.support.wait import DEADLINE
from tests.system.commands.command_process import command

PRINTING = """
import os
print("at import")
os.system("echo from a program")

async def agent(messages, ctx):
    print("in a run")
    yield "hello"
"""


@pytest.mark.requirement("stdout-of-run")
@pytest.mark.parametrize("option", ["--json", "--plain"])
def test_prints_of_an_agent_go_to_stderr(tmp_path: Path, option: str) -> None:
    (tmp_path / "bot.py").write_text(PRINTING)
    arguments = command("run", "hi", "--target", "bot.py", option)
    ended = subprocess.run(arguments, cwd=tmp_path, capture_output=True, text=True, timeout=DEADLINE, check=True)
    if option == "--json":
        kinds = [json.loads(line)["event"]["kind"] for line in ended.stdout.splitlines()]
        assert (kinds[0], kinds[-1]) == ("run_started", "run_finished")
    else:
        assert ended.stdout.startswith("● agent: hi\n\nhello\n")
    for text in ("at import", "from a program", "in a run"):
        assert text in ended.stderr
        assert text not in ended.stdout
