"""A terminal for one command: what a person types, and what is on the screen then."""

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

LAUNCH = """
import os, sys
terminal = os.open(sys.argv[1], os.O_RDWR)  # the first one that a new session opens is its own
for fd in range(3):
    os.dup2(terminal, fd)
os.execv(sys.executable, [sys.executable, "-m", "limelight", *sys.argv[2:]])
"""
SEQUENCE = re.compile(r"\x1b\[\??([0-9;]*)([A-Za-z])|(\r|\n)|([^\x1b\r\n]+)")
HALF = re.compile(r"\x1b(\[[?0-9;]*)?\Z")


class Screen:
    """As much of a terminal as rich asks for: it goes up, to the left, and erases lines."""

    def __init__(self) -> None:
        self._lines: list[str] = [""]
        self._row = self._column = 0
        self._half = ""

    @property
    def text(self) -> str:
        return "\n".join(line.rstrip() for line in self._lines).rstrip()

    def feed(self, data: str) -> None:
        data, self._half = self._half + data, ""
        half = HALF.search(data)
        if half is not None:  # the rest of this sequence has not come yet
            data, self._half = data[: half.start()], half[0]
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
    """`limelight` with arguments, in a terminal of 80 columns. Use as `with`; what is left of it is killed."""

    def __init__(self, *arguments: str, folder: Path, columns: int = 80, editor: str = "") -> None:
        self._fd, self._slave = pty.openpty()
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
            self._process.wait(10)
        os.close(self._slave)
        os.close(self._fd)

    @property
    def screen(self) -> str:
        return self._screen.text

    @property
    def is_as_before(self) -> bool:
        """Whether keys are echoed and lines are lines again."""
        return termios.tcgetattr(self._slave)[3] == self._modes[3]

    def type(self, keys: str) -> None:
        os.write(self._fd, keys.encode())

    def see(self, text: str, seconds: float = 30) -> None:
        """Wait until it is on the screen."""
        self._wait(lambda: text in self.screen, text, seconds)

    def see_no_more(self, text: str, seconds: float = 30) -> None:
        self._wait(lambda: text not in self.screen, f"no {text}", seconds)

    def end(self, seconds: float = 30) -> int:
        """The exit code."""
        self._wait(lambda: self._process.poll() is not None, "the end", seconds)
        self._read(0)
        return self._process.returncode

    def _wait(self, condition: Callable[[], bool], what: str, seconds: float) -> None:
        deadline = time.monotonic() + seconds
        while not condition():
            assert time.monotonic() < deadline, f"waited for {what!r}, there is:\n{self.screen}"
            self._read(0.05)

    def _read(self, seconds: float) -> None:
        while select.select([self._fd], [], [], seconds)[0]:
            self._screen.feed(self._decoder.decode(os.read(self._fd, 65536)))
            seconds = 0
