"""The keyboard of this terminal, as long as something is asked: keys come one by one and are not echoed.

It needs what Unix has. Elsewhere nobody counts as being there, so nothing is asked at the keyboard.
"""

import asyncio
import codecs
import os
import sys
from collections.abc import Generator
from contextlib import contextmanager
from importlib.util import find_spec
from typing import Self


def somebody_is_there() -> bool:
    """Whether this is a terminal with a person before it, and not a pipe or a job in the background."""
    if find_spec("termios") is None:
        return False
    try:
        return sys.stdin.isatty() and sys.stdout.isatty() and os.tcgetpgrp(sys.stdin.fileno()) == os.getpgrp()
    except (OSError, ValueError):
        return False


class Keyboard:
    """Use as `with`. Ctrl-C stays what it is."""

    def __init__(self) -> None:
        self._fd = sys.stdin.fileno()
        self._keys: asyncio.Queue[str] = asyncio.Queue()
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def __enter__(self) -> Self:
        import termios
        import tty

        self._before = termios.tcgetattr(self._fd)
        tty.setcbreak(self._fd)  # drops what was typed before: it cannot have been an answer
        asyncio.get_running_loop().add_reader(self._fd, self._read)
        return self

    def __exit__(self, *_: object) -> None:
        import termios

        asyncio.get_running_loop().remove_reader(self._fd)
        termios.tcsetattr(self._fd, termios.TCSADRAIN, self._before)

    @contextmanager
    def lent(self) -> Generator[None]:
        """Another program has the keyboard for a while."""
        self.__exit__()
        try:
            yield
        finally:
            self.__enter__()

    async def keys(self) -> str:
        """What is typed next, one key or a paste."""
        return await self._keys.get()

    def _read(self) -> None:
        try:
            typed = os.read(self._fd, 4096)
        except OSError:
            typed = b""
        if not typed:  # the terminal is gone
            asyncio.get_running_loop().remove_reader(self._fd)
        keys = self._decoder.decode(typed)
        if keys:
            self._keys.put_nowait(keys)
