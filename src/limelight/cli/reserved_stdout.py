"""Reserves standard output for the output of a command, so that other programs can parse it.

The user's agents may run in the process of the command. Whatever they print goes to standard error.
"""

import io
import os
import sys
from collections.abc import Generator
from contextlib import contextmanager, suppress
from typing import TextIO

STDOUT_FD = 1
STDERR_FD = 2


@contextmanager
def reserved_stdout() -> Generator[TextIO]:
    """Context manager: yields a file for standard output, and redirects all other output there to standard error.

    The output of child processes is redirected too, because the file descriptor is replaced.
    """
    original = sys.stdout
    with _reserved_descriptor(original) as reserved:
        sys.stdout = sys.stderr
        try:
            yield reserved
        finally:
            sys.stdout = original


@contextmanager
def _reserved_descriptor(stdout: TextIO) -> Generator[TextIO]:
    """Context manager: yields a copy of `stdout`, and points the original file descriptor to standard error.

    A file that does not have the descriptor of standard output is yielded unchanged.
    """
    try:
        is_process_stdout = stdout.fileno() == STDOUT_FD
    except (OSError, ValueError, io.UnsupportedOperation):  # not a file, as in tests
        is_process_stdout = False
    if not is_process_stdout:
        yield stdout
        return
    stdout.flush()
    saved = os.dup(STDOUT_FD)
    os.dup2(STDERR_FD, STDOUT_FD)
    reserved = open(saved, "w", encoding=stdout.encoding, errors=stdout.errors, closefd=False)  # noqa: SIM115
    try:
        yield reserved
    finally:
        with suppress(OSError):  # the reader of a pipe is gone
            reserved.close()
        with suppress(OSError):
            os.dup2(saved, STDOUT_FD)
        os.close(saved)
