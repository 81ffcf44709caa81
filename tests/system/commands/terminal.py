"""A pseudo-terminal for one command: sends keys and reads the screen."""

import codecs
import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Callable
from pathlib import Path
from typing import Self

from tests.support.wait import DEADLINE

LAUNCH = """
import os, sys
terminal = os.open(sys.argv[1], os.O_RDWR)  # becomes the controlling terminal of the new session
for fd in range(3):
    os.dup2(terminal, fd)
os.execv(sys.executable, [sys.executable, "-m", "limelight", *sys.argv[2:]])
"""
SEQUENCE = re.compile(r"\x1b\[\??([0-9;]*)([A-Za-z])|(\r|\n)|([^\x1b\r\n]+)")
INCOMPLETE = re.compile(r"\x1b(\[[?0-9;]*)?\Z")


class Screen:
    """The screen of a terminal, with the control sequences that rich uses."""

    def __init__(self) -> None:
        self._lines: list[str] = [""]
        self._row = self._column = 0
        self._incomplete = ""

    @property
    def text(self) -> str:
        return "\n".join(line.rstrip() for line in self._lines).rstrip()

    def feed(self, data: str) -> None:
        data, self._incomplete = self._incomplete + data, ""
        incomplete = INCOMPLETE.search(data)
        if incomplete is not None:  # the rest of the sequence has not arrived
            data, self._incomplete = data[: incomplete.start()], incomplete[0]
        for number, command, control, text in SEQUENCE.findall(data):
            if command == "A":
                self._row = max(0, self._row - int(number or 1))
            elif command == "K":
                line = self._lines[self._row]
                self._lines[self._row] = "" if number == "2" else line[: self._column]
            elif control == "\r":
                self._column = 0
            elif control == "\n":
                self._row += 1
                self._lines += [""] * (self._row + 1 - len(self._lines))
            elif text:
                line = self._lines[self._row].ljust(self._column)
                self._lines[self._row] = line[: self._column] + text + line[self._column + len(text) :]
                self._column += len(text)


class Terminal:
    """A `limelight` command in a terminal of 80 columns. Use as `with`, which kills the command at the end."""

    def __init__(self, *arguments: str, folder: Path, columns: int = 80, editor: str = "") -> None:
        self._fd, self._slave = pty.openpty()
        self._fds: tuple[int, ...] = (self._slave, self._fd)
        fcntl.ioctl(self._slave, termios.TIOCSWINSZ, struct.pack("HHHH", 50, columns, 0, 0))
        self._modes = termios.tcgetattr(self._slave)
        self._screen = Screen()
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        clean = {name: value for name, value in os.environ.items() if name not in ("VISUAL", "COLUMNS", "LINES")}
        self._process = subprocess.Popen(
            [sys.executable, "-c", LAUNCH, os.ttyname(self._slave), *arguments],
            cwd=folder,
            env={**clean, "TERM": "xterm", "EDITOR": editor},
            start_new_session=True,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._process.poll() is None:
            os.kill(self._process.pid, signal.SIGKILL)
            self._process.wait(DEADLINE)
        self.hang_up()

    def hang_up(self) -> None:
        """Close the terminal, as a user who closes its window."""
        for fd in self._fds:
            os.close(fd)
        self._fds = ()

    def exit_code(self) -> int:
        """Wait for the end of a command whose terminal is closed and return its exit code."""
        return self._process.wait(DEADLINE)

    @property
    def screen(self) -> str:
        return self._screen.text

    @property
    def modes_restored(self) -> bool:
        """Whether the terminal has its first modes again, with echo and lines."""
        return termios.tcgetattr(self._slave)[3] == self._modes[3]

    def type(self, keys: str) -> None:
        os.write(self._fd, keys.encode())

    def wait_for(self, text: str, seconds: float = DEADLINE) -> None:
        """Wait until the text is on the screen."""
        self._poll(lambda: text in self.screen, text, seconds)

    def wait(self, seconds: float = DEADLINE) -> int:
        """Wait for the end of the command and return its exit code."""
        self._poll(lambda: self._process.poll() is not None, "the end", seconds)
        self._read(0)
        return self._process.returncode

    def _poll(self, condition: Callable[[], bool], what: str, seconds: float) -> None:
        deadline = time.monotonic() + seconds
        while not condition():
            assert time.monotonic() < deadline, f"waited for {what!r}, there is:\n{self.screen}"
            self._read(0.05)

    def _read(self, seconds: float) -> None:
        while select.select([self._fd], [], [], seconds)[0]:
            self._screen.feed(self._decoder.decode(os.read(self._fd, 65536)))
            seconds = 0
