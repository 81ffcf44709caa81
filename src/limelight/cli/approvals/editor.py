"""A text in the editor of the person's choice: $VISUAL or $EDITOR, as elsewhere."""

import asyncio
import os
import shlex
import signal
import subprocess
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path


def chosen_editor() -> list[str]:
    """The command, or nothing if none is set."""
    try:
        return shlex.split(os.environ.get("VISUAL") or os.environ.get("EDITOR") or "")
    except ValueError:
        return []


async def edited(command: list[str], text: str, name: str) -> str:
    """The text as the person leaves it. Raises OSError if the editor does not start or ends with an error."""
    with tempfile.TemporaryDirectory(prefix="limelight-") as folder, _interrupts_are_the_editors():
        path = Path(folder) / name
        path.write_text(text)
        ended = await asyncio.to_thread(subprocess.run, [*command, str(path)], check=False)
        if ended.returncode:
            raise OSError(f"{command[0]} ended with the code {ended.returncode}")
        return path.read_text(errors="replace")


@contextmanager
def _interrupts_are_the_editors() -> Generator[None]:
    """Ctrl-C reaches us too, but it was not meant for us. (Ignored for good, it would be so in the editor as well.)"""

    def nothing(*_: object) -> None:
        pass

    before = signal.signal(signal.SIGINT, nothing)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
