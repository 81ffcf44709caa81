"""Backends of deepagents on the workspace of the current session: files, and files with a shell.

Commands run in the sandbox. Their time and stored output are limited. When a command ends, by itself, by its time limit
or by Stop, all processes that it has started are killed.
"""

import asyncio
import os
import signal
from contextlib import suppress
from pathlib import Path
from typing import Any, Self

from deepagents.backends.filesystem import FilesystemBackend
from deepagents.backends.protocol import ExecuteResponse, SandboxBackendProtocol

from limelight.builtin.file_tools import resolve_path, session_folder
from limelight.sandbox.sandbox import Sandbox

DEFAULT_SECONDS = 120
MAX_SECONDS = 600
MAX_OUTPUT_BYTES = 100_000
"""Maximum size of a command's output. Of larger output only the beginning is stored."""
DRAIN_SECONDS = 0.5
"""Time limit for reading the rest of the output after the command has ended."""
KILL_SECONDS = 2.0
"""How long the runner of a command may take to kill its processes."""
TIMEOUT_EXIT_CODE = 124


class SessionFilesBackend(FilesystemBackend):
    """Backend of deepagents' file tools. One object serves all sessions: `cwd` is the workspace of the current run."""

    def __init__(self, *, sample_files: bool) -> None:
        self._sample_files = sample_files
        super().__init__(root_dir=Path(), virtual_mode=True)

    @property
    def cwd(self) -> Path:
        return session_folder(sample_files=self._sample_files)

    @cwd.setter
    def cwd(self, _: Any) -> None:
        """Ignore the folder that the constructor of the base class assigns: `cwd` depends on the current run."""

    def _resolve_path(self, key: str) -> Path:
        # The base class raises ValueError, which would end the run, with the real path in its message.
        return resolve_path(self.cwd, key)


class SessionShellBackend(SessionFilesBackend, SandboxBackendProtocol):
    """Backend for the file tools and for `execute`, whose commands run in a sandbox, in the session's workspace."""

    def __init__(self, sandbox: Sandbox, *, sample_files: bool) -> None:
        super().__init__(sample_files=sample_files)
        self._sandbox = sandbox

    @property
    def id(self) -> str:
        return "limelight"

    def execute(self, command: str, *, timeout: int | None = None) -> ExecuteResponse:
        return asyncio.run(self.aexecute(command, timeout=timeout))

    async def aexecute(self, command: str, *, timeout: int | None = None) -> ExecuteResponse:  # noqa: ASYNC109
        folder = await asyncio.to_thread(lambda: self.cwd)
        seconds = min(timeout or DEFAULT_SECONDS, MAX_SECONDS)
        async with _OutputReader() as output:
            launch = await asyncio.to_thread(self._sandbox.command, folder, command)
            process = await asyncio.create_subprocess_exec(
                *launch.argv,
                cwd="/",
                env=launch.env,
                stdin=asyncio.subprocess.PIPE,
                stdout=output.write_end,
                stderr=asyncio.subprocess.STDOUT,
                start_new_session=True,
            )
            code = await _wait_and_kill(process, seconds)
            await output.drain()
        note = "" if code is not None else f"\n(cut off after {seconds} seconds)"
        code = TIMEOUT_EXIT_CODE if code is None else code
        return ExecuteResponse(output=f"{output.text}{note}", exit_code=code, truncated=output.is_truncated)


async def _wait_and_kill(process: asyncio.subprocess.Process, seconds: int) -> int | None:
    """Wait for a command and return its exit code; None after a timeout. In any case, end all its processes."""
    try:
        return await asyncio.wait_for(process.wait(), seconds)
    except TimeoutError:
        return None
    finally:
        await asyncio.shield(_kill(process))


async def _kill(process: asyncio.subprocess.Process) -> None:
    """End a command with all its processes: close the input of its runner, which then kills them.

    If the runner does not end in time, kill the runner's process group.
    """
    if process.stdin is not None:
        process.stdin.close()
    with suppress(TimeoutError):
        await asyncio.wait_for(process.wait(), KILL_SECONDS)
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    await process.wait()


class _OutputReader:
    """Reader of a command's output from a pipe. It stores the output up to a limit and discards the rest.

    The rest is read, too, so that the command is not blocked. The pipe is not created by asyncio, which would wait
    until all processes have closed it, including background processes of the command.
    """

    def __init__(self) -> None:
        self._output = bytearray()
        self.is_truncated = False

    async def __aenter__(self) -> Self:
        read_end, self.write_end = os.pipe()
        stream = asyncio.StreamReader()
        try:
            self._transport, _ = await asyncio.get_running_loop().connect_read_pipe(
                lambda: asyncio.StreamReaderProtocol(stream), os.fdopen(read_end, "rb", 0)
            )
        except BaseException:
            os.close(self.write_end)
            raise
        self._task = asyncio.create_task(self._read(stream))
        return self

    async def __aexit__(self, *_: object) -> None:
        self._close_write_end()
        self._task.cancel()
        self._transport.close()

    async def drain(self) -> None:
        """Read the rest of the output after the command has ended."""
        self._close_write_end()
        await asyncio.wait({self._task}, timeout=DRAIN_SECONDS)

    def _close_write_end(self) -> None:
        if self.write_end >= 0:
            os.close(self.write_end)
            self.write_end = -1

    async def _read(self, stream: asyncio.StreamReader) -> None:
        while piece := await stream.read(65536):
            room = MAX_OUTPUT_BYTES - len(self._output)
            self._output += piece[:room]
            self.is_truncated = self.is_truncated or len(piece) > room

    @property
    def text(self) -> str:
        return self._output.decode("utf-8", "replace")
