"""The policy of a sandbox: the folders, the network access and the limits of the code in it."""

from typing import Literal

import msgspec

Level = Literal["bubblewrap", "landlock", "none"]
"""How a sandbox confines its code. `none` is a separate process with limits, but without confinement."""

MB = 1024 * 1024


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """Limits of one sandbox. The kernel enforces them, or the process that supervises the sandbox."""

    memory_mb: int = 1024
    """Memory of a process, and of all processes of a command together."""
    cpu_seconds: int = 600
    """CPU time of a process."""
    processes: int = 64
    """Number of processes of a command. Python code cannot start any process."""
    file_mb: int = 256
    """Size of a file."""
    open_files: int = 256
    workspace_bytes: int = 0
    """Size of the workspace; 0 if it has no limit."""


class Policy(msgspec.Struct, frozen=True, kw_only=True):
    """The permissions and limits of one sandbox."""

    workspace: str
    """The folder that code works in and may write to."""
    read_only: tuple[str, ...] = ()
    """Files and folders that code may read and execute, such as the interpreter and its libraries."""
    hidden: tuple[str, ...] = ()
    """Files and folders that code must not read, even if they are below a folder of `read_only`."""
    network: bool = False
    limits: Limits = Limits()
