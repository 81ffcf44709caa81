"""deepagents' `execute` in the folder of the session that the agent works for, beside its file tools.

It is no sandbox: a command can do whatever the server's user can. What is bounded is its time, what is kept of its
output, and what it leaves behind: with its end, by itself, by its limit or by Stop, all that it has started is killed,
unless that has made itself a session of its own. It is not told the server's environment, in which keys may be.
"""

import asyncio
import os
import signal
from contextlib import suppress
from pathlib import Path
from typing import Self

from deepagents.backends.protocol import ExecuteResponse, SandboxBackendProtocol

from limelight.builtin.deep_files import SessionFiles

SECONDS = 120
"""How long a command may take if it does not say."""
MOST_SECONDS = 600
MOST_BYTES = 100_000
"""How much of its output is kept: the beginning."""
TOLD = ("PATH", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "TMPDIR")
"""What a command gets of the server's environment."""
LAST_SECONDS = 0.5
"""How long what was printed may take to arrive once the command has ended."""
TIMED_OUT = 124


class SessionShell(SessionFiles, SandboxBackendProtocol):
    """The files of the session, and commands that begin there."""

    @property
    def id(self) -> str:
        return "limelight"

    def execute(self, command: str, *, timeout: int | None = None) -> ExecuteResponse:
        return asyncio.run(self.aexecute(command, timeout=timeout))

    async def aexecute(self, command: str, *, timeout: int | None = None) -> ExecuteResponse:  # noqa: ASYNC109
        folder = await asyncio.to_thread(lambda: self.cwd)
        seconds = min(timeout or SECONDS, MOST_SECONDS)
        async with _Printed() as printed:
            process = await asyncio.create_subprocess_shell(
                command,
                cwd=folder,
                env=_environment(folder),
                stdin=asyncio.subprocess.DEVNULL,
                stdout=printed.end,
                stderr=asyncio.subprocess.STDOUT,
                start_new_session=True,
            )
            code = await _ended(process, seconds)
            await printed.whole()
        note = "" if code is not None else f"\n(cut off after {seconds} seconds)"
        code = TIMED_OUT if code is None else code
        return ExecuteResponse(output=f"{printed.text}{note}", exit_code=code, truncated=printed.is_cut)


async def _ended(process: asyncio.subprocess.Process, seconds: int) -> int | None:
    """The exit code; None if the time was over before. What it has started is gone then, in any case."""
    try:
        return await asyncio.wait_for(process.wait(), seconds)
    except TimeoutError:
        return None
    finally:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
        await process.wait()


class _Printed:
    """What a command prints, as far as it is kept; the rest is read all the same, so that it can go on.

    The pipe is not the process's own: asyncio would wait for all who hold it, also for what was left in the background.
    """

    def __init__(self) -> None:
        self._kept = bytearray()
        self.is_cut = False

    async def __aenter__(self) -> Self:
        mine, self.end = os.pipe()
        stream = asyncio.StreamReader()
        try:
            self._pipe, _ = await asyncio.get_running_loop().connect_read_pipe(
                lambda: asyncio.StreamReaderProtocol(stream), os.fdopen(mine, "rb", 0)
            )
        except BaseException:
            os.close(self.end)
            raise
        self._reading = asyncio.create_task(self._read(stream))
        return self

    async def __aexit__(self, *_: object) -> None:
        self._close_end()
        self._reading.cancel()
        self._pipe.close()

    async def whole(self) -> None:
        """The command has ended: what it has printed arrives."""
        self._close_end()
        await asyncio.wait({self._reading}, timeout=LAST_SECONDS)

    def _close_end(self) -> None:
        if self.end >= 0:
            os.close(self.end)
            self.end = -1

    async def _read(self, stream: asyncio.StreamReader) -> None:
        while piece := await stream.read(65536):
            room = MOST_BYTES - len(self._kept)
            self._kept += piece[:room]
            self.is_cut = self.is_cut or len(piece) > room

    @property
    def text(self) -> str:
        return self._kept.decode("utf-8", "replace")


def _environment(folder: Path) -> dict[str, str]:
    told = {name: os.environ[name] for name in TOLD if name in os.environ}
    return {"PATH": os.defpath, **told, "HOME": str(folder), "TERM": "dumb"}
