"""Makes the command line and the environment with which a program is started in a sandbox of a certain level."""

import os
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec

import limelight
from limelight.errors import SetupError
from limelight.sandbox.policy import MB, Level, Policy

SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64")
SYSTEM_FILES = ("/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d", "/etc/localtime", "/etc/alternatives")
NETWORK_FILES = (
    "/etc/resolv.conf",
    "/etc/hosts",
    "/etc/nsswitch.conf",
    "/etc/services",
    "/etc/ssl/certs",
    "/etc/ssl/openssl.cnf",
    "/etc/pki/tls/certs",
    "/etc/ca-certificates",
)
INHERITED = ("LANG", "LC_ALL", "LC_CTYPE", "TZ")
"""The environment variables of the server that a sandbox gets. All others may be secret."""
TEMPORARY_MB = 64
"""Size of `/tmp` and of `/dev/shm` in a sandbox with namespaces. They are in memory."""
BUBBLEWRAP = "bwrap"
FIRST_OUT_OF_MEMORY = '{ echo 1000 > /proc/self/oom_score_adj; } 2> /dev/null; exec "$@"'
"""The shell script that starts a program. If the memory of the machine is exhausted, the kernel then kills it and its
children first, and not the server. In the sandbox itself `/proc` cannot be written, so code cannot undo this."""


class Launch(NamedTuple):
    """How to start a process in a sandbox: its command line and its environment variables."""

    argv: list[str]
    env: dict[str, str]


def launch(level: Level, policy: Policy, program: str, arguments: Sequence[str] = ()) -> Launch:
    """Return how to start a program of this package, such as `worker`, in a sandbox.

    The program gets the level and the policy as its first arguments. Raises SetupError if the level cannot hide a path
    that the policy hides.
    """
    env = environment(level, policy)
    module = f"limelight.sandbox.{program}"
    argv = [sys.executable, "-I", "-B", "-m", module, level, msgspec.json.encode(policy).decode(), *arguments]
    if level == "bubblewrap":
        # The other processes of a namespace cannot signal its first one, so code cannot stop its supervisor.
        argv = [*bubblewrap(policy), "--as-pid-1", "--", *argv]
    if level == "landlock":
        check_hidden(policy)
    return Launch(["/bin/sh", "-c", FIRST_OUT_OF_MEMORY, "sh", *argv], env)


def environment(level: Level, policy: Policy) -> dict[str, str]:
    """Return the environment variables of a sandbox. Of the server's variables it has only those in INHERITED."""
    inherited = {name: os.environ[name] for name in INHERITED if name in os.environ}
    return {
        "LANG": "C.UTF-8",
        **inherited,
        "PATH": os.defpath if level == "none" else "/usr/local/bin:/usr/bin:/bin",
        "HOME": policy.workspace,
        "TMPDIR": "/tmp" if level == "bubblewrap" else policy.workspace,
        "TERM": "dumb",
        # At the level `landlock`, git fails because it must not read the system's configuration.
        "GIT_CONFIG_NOSYSTEM": "1",
        # One thread for each core would need more memory than the limit.
        "OMP_NUM_THREADS": "1",
        "OPENBLAS_NUM_THREADS": "1",
    }


def readable_paths(extra: Iterable[str] = (), *, network: bool = False) -> tuple[str, ...]:
    """Return the files and folders that code must be able to read: system programs, interpreter and libraries."""
    paths = [*SYSTEM, *SYSTEM_FILES, *(NETWORK_FILES if network else ()), *_interpreter_paths(), *extra]
    existing = (path for path in paths if Path(path).exists())
    return tuple(dict.fromkeys(existing))


def _interpreter_paths() -> list[str]:
    """Return the folders of the Python interpreter. Not its whole prefix, which may be a home folder."""
    prefixes = dict.fromkeys((sys.prefix, sys.exec_prefix, sys.base_prefix, sys.base_exec_prefix))
    names = [*prefixes, *(os.path.realpath(prefix) for prefix in prefixes)]
    parts = [str(Path(name, part)) for name in names for part in ("bin", "lib", "lib64", "pyvenv.cfg")]
    package = str(Path(limelight.__file__).parent)
    return [*dict.fromkeys(parts), package, os.path.realpath(package)]


def check_hidden(policy: Policy) -> None:
    """Raise SetupError if a path to hide is below a readable folder: Landlock cannot exclude a part of a folder."""
    for path in policy.hidden:
        for readable in (*policy.read_only, policy.workspace):
            if _is_below(path, readable):
                raise SetupError(f"the sandbox level landlock cannot hide {path}, because code may read {readable}")


def bubblewrap(policy: Policy) -> list[str]:
    """Return the command line of bubblewrap for a policy, up to the program that it runs."""
    argv = [BUBBLEWRAP, "--unshare-all", "--die-with-parent", "--new-session", "--cap-drop", "ALL"]
    argv += ["--unshare-user", "--disable-userns", "--hostname", "sandbox"]
    argv += ["--share-net"] if policy.network else []
    # Later mounts cover earlier ones, and any other path may be below /tmp.
    argv += ["--proc", "/proc", "--dev", "/dev", *_tmpfs("/dev/shm"), *_tmpfs("/tmp")]
    for path in policy.read_only:
        argv += _mount(path)
    readable = [path for path in policy.hidden if any(_is_below(path, folder) for folder in policy.read_only)]
    writable = [path for path in policy.hidden if _is_below(path, policy.workspace)]
    argv += [*_hide(readable), "--bind", policy.workspace, policy.workspace, *_hide(writable)]
    # The folders of these mounts are in memory without a limit. Root might change kernel settings in /proc/sys.
    for path in ("/proc", "/dev", "/"):
        argv += ["--remount-ro", path]
    return [*argv, "--chdir", policy.workspace]


def _tmpfs(path: str) -> list[str]:
    return ["--size", str(TEMPORARY_MB * MB), "--tmpfs", path]


def _hide(paths: Iterable[str]) -> list[str]:
    """Return the arguments that mount an empty file or folder over each of these paths, if the path exists."""
    argv: list[str] = []
    for path in map(os.path.realpath, paths):
        if Path(path).is_dir():
            argv += ["--tmpfs", path, "--remount-ro", path]
        elif Path(path).exists():
            argv += ["--ro-bind", "/dev/null", path]
    return argv


def _mount(path: str) -> list[str]:
    if path in SYSTEM and Path(path).is_symlink():  # /bin is usr/bin on current systems
        return ["--symlink", str(Path(path).readlink()), path]
    return ["--ro-bind", path, path]


def _is_below(path: str, folder: str) -> bool:
    return Path(os.path.realpath(path)).is_relative_to(os.path.realpath(folder))


def read_arguments(argv: Sequence[str]) -> tuple[Level, Policy, list[str]]:
    """Parse the arguments of a program that `launch` has started: its level, its policy and the other arguments."""
    level = msgspec.convert(argv[0], Level)
    return level, msgspec.json.decode(argv[1], type=Policy), list(argv[2:])
