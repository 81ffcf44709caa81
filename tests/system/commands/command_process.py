"""`limelight` commands in processes."""

import subprocess
import sys
from pathlib import Path

from tests.support.wait import DEADLINE, wait_for


def command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "limelight", *arguments]


def limelight(
    *arguments: str, folder: Path, code: int = 0, stdin: bytes = b"", **environment: str
) -> "subprocess.CompletedProcess[bytes]":
    """Run a command that ends with this exit code, with these environment variables only."""
    ended = subprocess.run(
        command(*arguments),
        cwd=folder,
        env=environment,
        input=stdin,
        capture_output=True,
        timeout=DEADLINE,
        check=False,
    )
    assert ended.returncode == code, ended.stdout + ended.stderr
    return ended


def wait_for_text(path: Path, text: str) -> None:
    """Wait until another process has written this text to a file."""
    wait_for(f"{text!r} in {path.name}", lambda: text in path.read_text())
