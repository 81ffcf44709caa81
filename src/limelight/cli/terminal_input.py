"""Input at the terminal: single keys, and text edited in $VISUAL or $EDITOR.

The keyboard needs a Unix terminal. Elsewhere `is_interactive` returns False, so that commands do not prompt.
"""

import asyncio
import codecs
import os
import shlex
import signal
import subprocess
import sys
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Self


def is_interactive() -> bool:
    """Whether stdin and stdout are a terminal and this process is in its foreground."""
    if find_spec("termios") is None:
        return False
    try:
        return sys.stdin.isatty() and sys.stdout.isatty() and os.tcgetpgrp(sys.stdin.fileno()) == os.getpgrp()
    except (OSError, ValueError):
        return False


class Keyboard:
    """Reads single key presses without echo. Use as `with`. Ctrl-C still sends SIGINT."""

    def __init__(self) -> None:
        self._fd = sys.stdin.fileno()
        self._keys: asyncio.Queue[str] = asyncio.Queue()
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def __enter__(self) -> Self:
        import termios
        import tty

        self._saved = termios.tcgetattr(self._fd)
        tty.setcbreak(self._fd)  # discards input typed earlier, which was not meant for this prompt
        asyncio.get_running_loop().add_reader(self._fd, self._on_readable)
        return self

    def __exit__(self, *_: object) -> None:
        import termios

        asyncio.get_running_loop().remove_reader(self._fd)
        termios.tcsetattr(self._fd, termios.TCSADRAIN, self._saved)

    @contextmanager
    def released(self) -> Generator[None]:
        """Context manager: restores the normal terminal mode while an editor or another program uses the terminal."""
        self.__exit__()
        try:
            yield
        finally:
            self.__enter__()

    async def read(self) -> str:
        """Wait for input and return it: one key press or pasted text."""
        return await self._keys.get()

    def _on_readable(self) -> None:
        try:
            data = os.read(self._fd, 4096)
        except OSError:
            data = b""
        if not data:  # the terminal was closed
            asyncio.get_running_loop().remove_reader(self._fd)
        keys = self._decoder.decode(data)
        if keys:
            self._keys.put_nowait(keys)


def editor_command() -> list[str]:
    """Return the command of $VISUAL or $EDITOR; empty if neither is set."""
    try:
        return shlex.split(os.environ.get("VISUAL") or os.environ.get("EDITOR") or "")
    except ValueError:
        return []


async def edit_text(command: list[str], text: str, name: str) -> str:
    """Open a text in the editor and return the saved text. Raises OSError if the editor does not start or fails."""
    with tempfile.TemporaryDirectory(prefix="limelight-") as folder, _ignore_sigint():
        path = Path(folder) / name
        path.write_text(text)
        ended = await asyncio.to_thread(subprocess.run, [*command, str(path)], check=False)
        if ended.returncode:
            raise OSError(f"{command[0]} ended with the code {ended.returncode}")
        return path.read_text(errors="replace")


@contextmanager
def _ignore_sigint() -> Generator[None]:
    """Context manager: ignores Ctrl-C while the editor is open, which handles it itself.

    SIG_IGN is not used, because the editor would inherit it.
    """

    def ignore(*_: object) -> None:
        pass

    previous = signal.signal(signal.SIGINT, ignore)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, previous)
