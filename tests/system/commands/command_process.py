"""`limelight` commands in processes."""

import subprocess
import sys
import time
from pathlib import Path


def command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "limelight", *arguments]


def limelight(
    *arguments: str, folder: Path, code: int = 0, stdin: bytes = b"", **environment: str
) -> "subprocess.CompletedProcess[bytes]":
    """Run a command that ends with this exit code, with these environment variables only."""
    ended = subprocess.run(
        command(*arguments), cwd=folder, env=environment, input=stdin, capture_output=True, timeout=60, check=False
    )
    assert ended.returncode == code, ended.stdout + ended.stderr
    return ended


def wait_for_text(path: Path, text: str, seconds: float = 30) -> None:
    """Wait until another process has written this text to a file."""
    deadline = time.monotonic() + seconds
    while text not in path.read_text():
        assert time.monotonic() < deadline, path.read_text()
        time.sleep(0.02)  # a file that another process writes has no event to wait for
