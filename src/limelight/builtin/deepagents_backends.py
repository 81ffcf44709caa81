"""Storage backends for deepagents: the files of the session's workspace, with or without a shell.

Commands run in the sandbox. Their time and stored output are limited. When a command ends, by itself, by its time limit
or by Stop, all processes that it has started are killed.
"""

import asyncio
import errno
import io
import os
import signal
import time
from base64 import b64encode
from collections.abc import Iterator
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Any, Self

from deepagents.backends.filesystem import FilesystemBackend
from deepagents.backends.protocol import (
    DEFAULT_GREP_TIMEOUT,
    DeleteResult,
    EditResult,
    ExecuteResponse,
    FileData,
    FileDownloadResponse,
    FileInfo,
    FileOperationError,
    FileUploadResponse,
    GlobResult,
    GrepMatch,
    GrepResult,
    LsResult,
    ReadResult,
    SandboxBackendProtocol,
    WriteResult,
)
from deepagents.backends.utils import (
    InvalidGlobPatternError,
    _get_backend_read_file_type,  # pyright: ignore[reportPrivateUsage]
    check_empty_content,
    compile_grep_include_glob,
    perform_string_replacement,
    slice_read_response,
)

from limelight.builtin.file_tools import (
    delete,
    files_below,
    inner_path,
    is_file,
    resolve_path,
    session_folder,
)
from limelight.errors import AgentFailed
from limelight.file_trees import list_folder, open_file, read_bytes, write_bytes
from limelight.models import LOCAL_OWNER
from limelight.sandbox.sandbox import Sandbox, kill_rest_of_command
from limelight.sources.tool_api import current

MAX_TEXT_BYTES = 2 * 1024 * 1024
"""Size limit of a text file that is read or edited. The library needs many times as much memory for it."""
MAX_BINARY_BYTES = 8 * 1024 * 1024
"""Size limit of an image or another file that is read as a whole."""
MAX_SEARCHED_BYTES = 10 * 1024 * 1024
"""Size limit of a file that `grep` searches. It skips larger files."""
MAX_FOUND_CHARACTERS = 2 * 1024 * 1024
"""Limit of all lines that `grep` finds. It ends there and says that there are more."""
GLOB_SECONDS = 5
"""How long `glob` may search, as in the library."""
DEFAULT_SECONDS = 120
MAX_SECONDS = 600
MAX_OUTPUT_BYTES = 100_000
"""Size limit of a command's output. Only the beginning of larger output is stored."""
DRAIN_SECONDS = 0.5
"""How long the rest of a command's output is read after the command has ended."""
KILL_SECONDS = 2.0
"""How long the sandbox's runner of a command may take to kill the command's processes."""
TIMEOUT_EXIT_CODE = 124
REFUSED_EXIT_CODE = 126


class SessionFilesBackend(FilesystemBackend):
    """Backend of deepagents' file tools for all sessions. Its folder (`cwd`) is the current run's workspace.

    The base class checks the path of a file and then opens it by its name. A command that replaces a folder with a link
    in between would lead it out of the workspace. So every method that opens files is overridden here.
    """

    def __init__(self, *, sample_files: bool) -> None:
        self._sample_files = sample_files
        super().__init__(root_dir=Path(), virtual_mode=True)

    @property
    def cwd(self) -> Path:
        return session_folder(sample_files=self._sample_files)

    @cwd.setter
    def cwd(self, _: Any) -> None:
        """Ignore the folder that the base class's constructor assigns, because `cwd` depends on the current run."""

    def _resolve_path(self, key: str) -> Path:
        # The base class raises ValueError, which would end the run, with the real path in its message.
        return resolve_path(self.cwd, key)

    def _locate(self, name: str) -> tuple[Path, str]:
        """Return the workspace, and the path of a file or folder below it, as `inner_path` does."""
        folder = self.cwd
        return folder, inner_path(folder, name)

    def read(self, file_path: str, offset: int = 0, limit: int = 2000) -> ReadResult:
        is_text = _get_backend_read_file_type(file_path) == "text"
        try:
            raw = read_bytes(*self._locate(file_path), MAX_TEXT_BYTES if is_text else MAX_BINARY_BYTES)
            if not is_text:
                return ReadResult(file_data=FileData(content=b64encode(raw).decode(), encoding="base64"))
            text = _decode(raw)
        except (FileNotFoundError, IsADirectoryError):
            return ReadResult(error=f"File '{file_path}' not found")
        except (OSError, RuntimeError, UnicodeDecodeError) as error:
            hint = ": search it with grep" if is_text and _is_too_large(error) else ""
            return ReadResult(error=f"Error reading file '{file_path}': {_reason(error)}{hint}")
        if note := check_empty_content(text):
            return ReadResult(file_data=FileData(content=note, encoding="utf-8"))
        return slice_read_response(FileData(content=text, encoding="utf-8"), offset, limit)

    def write(self, file_path: str, content: str) -> WriteResult:
        try:
            write_bytes(*self._locate(file_path), content.encode())
        except (OSError, RuntimeError, UnicodeEncodeError) as error:
            return WriteResult(error=f"Error writing file '{file_path}': {_reason(error)}")
        return WriteResult(path=file_path)

    def edit(
        self,
        file_path: str,
        old_string: str,
        new_string: str,
        replace_all: bool = False,
    ) -> EditResult:
        try:
            folder, path = self._locate(file_path)
            text = _decode(read_bytes(folder, path, MAX_TEXT_BYTES))
            replaced = perform_string_replacement(text, _with_lf(old_string), _with_lf(new_string), replace_all)
            if isinstance(replaced, str):
                return EditResult(error=replaced)
            write_bytes(folder, path, replaced[0].encode())
        except (FileNotFoundError, IsADirectoryError):
            return EditResult(error=f"Error: File '{file_path}' not found")
        except (OSError, RuntimeError, UnicodeError) as error:
            return EditResult(error=f"Error editing file '{file_path}': {_reason(error)}")
        return EditResult(path=file_path, occurrences=int(replaced[1]))

    def delete(self, file_path: str) -> DeleteResult:
        try:
            delete(*self._locate(file_path), folders=True)
        except FileNotFoundError:
            return DeleteResult(error=f"Error: '{file_path}' not found")
        except (OSError, RuntimeError) as error:
            return DeleteResult(error=f"Error deleting '{file_path}': {_reason(error)}")
        return DeleteResult(path=file_path)

    def ls(self, path: str) -> LsResult:
        try:
            folder, inner = self._locate(path)
            folders, files = list_folder(folder, inner)
        except FileNotFoundError:
            return LsResult(error=f"Path '{path}': path_not_found")
        except NotADirectoryError:
            return LsResult(error=f"Path '{path}': not_a_directory")
        except (OSError, RuntimeError) as error:
            return LsResult(error=f"Cannot list '{path}': {_reason(error)}")
        entries = [FileInfo(path=f"/{name}/", is_dir=True, size=0) for name in folders]
        entries += [info for name in files if (info := _file_info(folder, name)) is not None]
        return LsResult(entries=sorted(entries, key=lambda entry: entry["path"]))

    def glob(self, pattern: str, path: str | None = None) -> GlobResult:
        try:
            matches = compile_grep_include_glob(pattern)
            folder, inner = self._locate(path or "/")
        except InvalidGlobPatternError as error:
            return GlobResult(error=str(error))
        except (OSError, RuntimeError) as error:
            return GlobResult(error=f"Error globbing path '{path}': {_reason(error)}", matches=[])
        deadline = time.monotonic() + GLOB_SECONDS
        found = list[FileInfo]()
        for name in files_below(folder, inner):
            if time.monotonic() > deadline:
                return GlobResult(matches=found, truncated=True, truncation_reason="budget")
            if matches(name.removeprefix(f"{inner}/")) and (info := _file_info(folder, name)) is not None:
                found.append(info)
        return GlobResult(matches=sorted(found, key=lambda entry: entry["path"]))

    def grep(
        self,
        pattern: str,
        path: str | None = None,
        glob: str | None = None,
        *,
        max_count: int | None = None,
        context_lines: int = 0,
    ) -> GrepResult:
        if context_lines:
            raise ValueError("context lines are not supported")
        try:
            matches = compile_grep_include_glob(glob) if glob else None
            folder, inner = self._locate(path or "/")
        except InvalidGlobPatternError as error:
            return GrepResult(error=str(error), matches=[])
        except (OSError, RuntimeError) as error:
            return GrepResult(error=f"Error searching path '{path}': {_reason(error)}", matches=[])
        search = _Search(pattern, max_count)
        if is_file(folder, inner):
            names, base = iter([inner]), inner.rpartition("/")[0]
        else:
            names, base = files_below(folder, inner), inner
        for name in names:
            if matches is None or matches(name.removeprefix(f"{base}/")):
                search.read(folder, name)
            if search.is_complete:
                break
        error = "\n".join(["One or more files could not be fully searched:", *search.errors]) if search.errors else None
        return GrepResult(error=error, matches=search.matches, truncated=search.is_truncated)

    def upload_files(self, files: list[tuple[str, bytes]]) -> list[FileUploadResponse]:
        def upload(path: str, content: bytes) -> FileUploadResponse:
            try:
                write_bytes(*self._locate(path), content)
            except (OSError, RuntimeError) as error:
                return FileUploadResponse(path=path, error=_error_code(error))
            return FileUploadResponse(path=path, error=None)

        return [upload(path, content) for path, content in files]

    def download_files(self, paths: list[str]) -> list[FileDownloadResponse]:
        def download(path: str) -> FileDownloadResponse:
            try:
                content = read_bytes(*self._locate(path), MAX_BINARY_BYTES)
            except (OSError, RuntimeError) as error:
                return FileDownloadResponse(path=path, content=None, error=_error_code(error))
            return FileDownloadResponse(path=path, content=content, error=None)

        return [download(path) for path in paths]


class _Search:
    """A search for a text in files, line by line, with limits of time and of the size of what it finds."""

    def __init__(self, pattern: str, max_count: int | None) -> None:
        self._pattern = pattern
        self._max_count = max_count
        self._deadline = time.monotonic() + DEFAULT_GREP_TIMEOUT
        self._size = 0
        self.matches: list[GrepMatch] = []
        self.errors: list[str] = []
        self.is_truncated = False
        self.is_complete = False

    def read(self, folder: Path, name: str) -> None:
        """Search a file of the workspace. A file that is too large, or no text, is left out."""
        try:
            with open_file(folder, name) as file:
                if os.fstat(file.fileno()).st_size > MAX_SEARCHED_BYTES:
                    return
                text = io.TextIOWrapper(file, encoding="utf-8")
                for number, line in enumerate(_limited(text), start=1):
                    self._take(name, number, line)
                    if self.is_complete:
                        return
        except UnicodeDecodeError:
            return
        except OSError as error:
            self.errors.append(f"- /{name}: {_reason(error)}")

    def _take(self, name: str, number: int, line: str) -> None:
        if time.monotonic() > self._deadline:
            self.is_complete = self.is_truncated = True
        elif self._pattern in line:
            self._size += len(line)
            too_many = self._max_count is not None and len(self.matches) >= self._max_count
            if too_many or self._size > MAX_FOUND_CHARACTERS:
                self.is_complete = self.is_truncated = True
            else:
                self.matches.append(GrepMatch(path=f"/{name}", line=number, text=line.rstrip("\n")))


def _limited(text: io.TextIOWrapper) -> Iterator[str]:
    """Yield the lines of a file up to MAX_SEARCHED_BYTES characters, because the file may grow while it is read."""
    left = MAX_SEARCHED_BYTES
    while left > 0 and (line := text.readline(left)):
        left -= len(line)
        yield line


def _file_info(folder: Path, path: str) -> FileInfo | None:
    """Return the name, size and time of a file of the workspace; None if it was removed or replaced by a link."""
    try:
        with open_file(folder, path) as file:
            found = os.fstat(file.fileno())
    except OSError:
        return None
    changed = datetime.fromtimestamp(found.st_mtime).astimezone().replace(tzinfo=None).isoformat()
    return FileInfo(path=f"/{path}", is_dir=False, size=found.st_size, modified_at=changed)


def _decode(raw: bytes) -> str:
    return _with_lf(raw.decode())


def _with_lf(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _is_too_large(error: Exception) -> bool:
    return isinstance(error, OSError) and error.errno == errno.EFBIG


def _reason(error: Exception) -> str:
    """Return the reason of an error, without the real path of the workspace."""
    return error.strerror or str(error) if isinstance(error, OSError) else str(error)


def _error_code(error: Exception) -> FileOperationError:
    if isinstance(error, FileNotFoundError):
        return "file_not_found"
    if isinstance(error, IsADirectoryError):
        return "is_directory"
    return "permission_denied" if isinstance(error, PermissionError) else "invalid_path"


class SessionShellBackend(SessionFilesBackend, SandboxBackendProtocol):
    """Backend of deepagents' file tools and of `execute`, whose commands run sandboxed in the session's workspace."""

    def __init__(self, sandbox: Sandbox, *, sample_files: bool) -> None:
        super().__init__(sample_files=sample_files)
        self._sandbox = sandbox

    @property
    def id(self) -> str:
        return "limelight"

    def execute(self, command: str, *, timeout: int | None = None) -> ExecuteResponse:
        return asyncio.run(self.aexecute(command, timeout=timeout))

    async def aexecute(self, command: str, *, timeout: int | None = None) -> ExecuteResponse:  # noqa: ASYNC109
        context = current()
        try:
            give_back = self._sandbox.quota.take(LOCAL_OWNER if context is None else context.user.user_id)
        except AgentFailed as error:
            return ExecuteResponse(output=error.detail, exit_code=REFUSED_EXIT_CODE)
        try:
            return await self._execute(command, min(timeout or DEFAULT_SECONDS, MAX_SECONDS))
        finally:
            give_back()

    async def _execute(self, command: str, seconds: int) -> ExecuteResponse:
        folder = await asyncio.to_thread(lambda: self.cwd)
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
    """Wait for a command and return its exit code, or None after a timeout. Then kill all of its processes."""
    try:
        return await asyncio.wait_for(process.wait(), seconds)
    except TimeoutError:
        return None
    finally:
        await asyncio.shield(_kill(process))


async def _kill(process: asyncio.subprocess.Process) -> None:
    """Kill a command and all its processes, by closing the input of the runner that started them.

    If the runner does not end in time, kill the runner's process group.
    """
    if process.stdin is not None:
        process.stdin.close()
    with suppress(TimeoutError):
        await asyncio.wait_for(process.wait(), KILL_SECONDS)
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    await process.wait()
    await asyncio.to_thread(kill_rest_of_command, process.pid)  # the runner has done it, unless it was killed itself


class _OutputReader:
    """Reads a command's output from a pipe, stores it up to a limit and discards the rest.

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
