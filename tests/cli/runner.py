"""Runs `limelight` commands in this process, with typer's CliRunner."""

import logging
import os
import signal
import sys
import threading
from collections.abc import Generator
from contextlib import chdir, contextmanager
from pathlib import Path
from typing import Any, NamedTuple
from unittest import mock

from typer.testing import CliRunner

from limelight.cli import main

USAGE_ERROR, TEMPORARY_FAILURE = 2, 75
SERVE_SECONDS = 60


class Result(NamedTuple):
    """What a command wrote, and its exit code."""

    stdout: str
    stderr: str
    exit_code: int


def invoke(*arguments: str, folder: Path, stdin: bytes = b"", **environment: str) -> Result:
    """Run a command in a folder, with no other settings in the environment than these."""
    settings = {name: None for name in os.environ if name.startswith(("LIMELIGHT_", "OPENAI_"))}
    environ = {**settings, "LIMELIGHT_UNDERSTUDY_PACE_MS": "0", **environment}
    exit_code = 0
    with (
        chdir(folder),
        own_logging(),
        CliRunner().isolation(stdin, environ) as (stdout, stderr, _),
        mock.patch.object(sys, "argv", ["limelight", *arguments]),
    ):
        try:
            main()
        except SystemExit as ended:
            exit_code = ended.code if isinstance(ended.code, int) else 0
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
        return Result(stdout.getvalue().decode(), stderr.getvalue().decode(), exit_code)


def limelight(*arguments: str, folder: Path, code: int = 0, stdin: bytes = b"", **environment: str) -> Result:
    """Run a command that ends with this exit code."""
    result = invoke(*arguments, folder=folder, stdin=stdin, **environment)
    assert result.exit_code == code, result
    return result


def refused(*arguments: str, folder: Path, code: int = USAGE_ERROR, **environment: Any) -> str:
    """The only line on stderr of a `serve` that does not start. One that starts is stopped, and fails the test."""
    timer = threading.Timer(SERVE_SECONDS, os.kill, (os.getpid(), signal.SIGTERM))
    timer.start()
    try:
        result = limelight("serve", *arguments, folder=folder, code=code, **environment)
    finally:
        timer.cancel()
    assert result.stdout == ""
    (line,) = result.stderr.splitlines()
    assert line.startswith("limelight: ")
    return line


@contextmanager
def own_logging() -> Generator[None]:
    """Give the block a root logger without handlers, as a new process has it, and undo its changes."""
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
