"""A worker under the control of hostile code, and the things outside of its sandbox that the code must not reach."""

import contextlib
import ctypes
import mmap
import os
import socket
import subprocess
import sys
import time
from collections.abc import Generator
from multiprocessing import shared_memory
from pathlib import Path
from typing import Any, NamedTuple
from uuid import uuid4

from limelight.sandbox.confinement import drop_capabilities
from limelight.sandbox.launch import Launch
from limelight.sandbox.policy import Limits
from limelight.sandbox.process import WorkerLost, WorkerProcess
from limelight.sandbox.sandbox import Sandbox
from limelight.sandbox.value_encoding import decode
from limelight.sandbox.worker_messages import Error, Ready, Result
from tests.sandbox.escapes import PRELUDE
from tests.support.wait import DEADLINE

IPC_PRIVATE, IPC_RMID = 0, 0
_libc = ctypes.CDLL(None, use_errno=True)
_libc.shmat.restype = ctypes.c_void_p


class Report(NamedTuple):
    """What code in the worker has reported."""

    reached: str
    """What the attack has reached; "" if nothing."""
    error: str
    """The name of the error that ended the attack, with the names of its base classes; "" if there was none."""
    message: str


class Attacker:
    """A worker that runs native Python code. A worker that was lost is replaced."""

    def __init__(self, sandbox: Sandbox, workspace: Path) -> None:
        self.sandbox = sandbox
        self.workspace = workspace
        self.worker: WorkerProcess | None = None

    def start(self, imports: list[str] | None = None) -> WorkerProcess:
        """Start a worker, and return it when it is ready."""
        self.close()
        worker = self.worker = self.sandbox.start_worker(self.workspace)
        configure(worker, imports if imports is not None else ["*"])
        return worker

    def run(self, code: str) -> Result | Error:
        """Run code in the interpreter, and return the message that describes its end."""
        worker = self.worker or self.start()
        try:
            worker.send({"type": "run", "code": code})
            return receive_end(worker)
        except WorkerLost:
            self.close()
            raise

    def attack(self, code: str, target: dict[str, Any] | None = None) -> Report:
        """Run code as native Python."""
        source = f"target = {target or {}!r}\nreached = ''\n{PRELUDE}\n{code}"
        end = self.run(
            f"""
import timeit
source = {source!r}
space = {{}}
outcome = []
native = '''
try:
    exec(source, space)
    outcome.extend([str(space.get("reached") or ""), "", ""])
except BaseException as error:
    kinds = " ".join(kind.__name__ for kind in type(error).__mro__)
    outcome.extend([str(space.get("reached") or ""), kinds, str(error)])
'''
timeit.timeit(native, number=1, globals={{"source": source, "space": space, "outcome": outcome}})
outcome[0] + chr(0) + outcome[1] + chr(0) + outcome[2]
"""
        )
        assert isinstance(end, Result), end
        return Report(*str(decode(end.value)).split("\0", 2))

    def close(self) -> None:
        if self.worker is not None:
            self.worker.kill()
            self.worker = None


def configure(worker: WorkerProcess, imports: list[str]) -> None:
    """Wait until a worker is ready, and configure it without tools."""
    deadline = time.monotonic() + DEADLINE
    while True:
        message = worker.receive(1)
        if isinstance(message, Ready):
            break
        assert time.monotonic() < deadline, "the worker is not ready"
    worker.send({"type": "configure", "imports": imports, "max_print": 10_000, "tools": [], "plain_final_answer": True})


def receive_end(worker: WorkerProcess) -> Result | Error:
    """Return the message that ends the running code."""
    deadline = time.monotonic() + DEADLINE
    while time.monotonic() < deadline:
        message = worker.receive(1)
        if isinstance(message, Result | Error):
            return message
    raise AssertionError("the code does not end")


class Outside:
    """Files, processes and sockets outside of a sandbox. Each contains the secret."""

    def __init__(self, folder: Path) -> None:
        self.secret = f"limesecret{uuid4().hex}"
        self.folder = folder / "outside"
        self.workspace = folder / "workspace"
        self.library = folder / "library"
        for path in (self.workspace, self.library, self.folder / "empty", self.folder / "home" / ".ssh"):
            path.mkdir(parents=True)
        self.database = self.folder / "data" / "limelight.db"
        self.config = self.folder / "config.toml"
        self.files = [
            self.database,
            self.config,
            self.folder / "home" / ".ssh" / "id_rsa",
            self.folder / "other_workspace" / "notes.txt",
            self.library / "text",
        ]
        for file in self.files:
            file.parent.mkdir(exist_ok=True)
            file.write_text(self.secret if file.parent != self.library else "text")
        with contextlib.suppress(OSError):
            os.setxattr(self.config, "user.kept", b"kept")
        self._started: list[Any] = []

    def sandbox(self, level: Any, **options: Any) -> Sandbox:
        limits = options.pop("limits", Limits(memory_mb=768, cpu_seconds=60, file_mb=16, processes=32))
        return Sandbox(
            choice=level,
            read_only=(str(self.library),),
            hidden=(str(self.database.parent), str(self.config)),
            limits=limits,
            **options,
        )

    @contextlib.contextmanager
    def started(self) -> Generator["Outside"]:
        """Start the processes, sockets and shared memories."""
        with contextlib.ExitStack() as stack:
            self.victim = subprocess.Popen(
                ["sleep", "600"],
                env={"SECRET": self.secret},
                start_new_session=True,
                cwd=self.folder,
                preexec_fn=drop_capabilities,  # those of root would protect it
            )
            stack.callback(self.victim.wait)
            stack.callback(self.victim.kill)
            self.sockets = {name: stack.enter_context(listening) for name, listening in self._sockets().items()}
            self.server_fd = os.open(self.database, os.O_RDONLY)
            os.set_inheritable(self.server_fd, True)
            stack.callback(os.close, self.server_fd)
            self.page = mmap.mmap(-1, 4096)
            self.page.write(self.secret.encode())
            stack.callback(self.page.close)
            self.memory = _libc.shmget(IPC_PRIVATE, 4096, 0o1600)
            assert self.memory >= 0
            stack.callback(_libc.shmctl, self.memory, IPC_RMID, None)
            address = _libc.shmat(self.memory, None, 0)
            ctypes.memmove(address, self.secret.encode(), len(self.secret))
            _libc.shmdt(ctypes.c_void_p(address))
            self.posix = shared_memory.SharedMemory(create=True, size=4096)
            stack.callback(self.posix.unlink)
            stack.callback(self.posix.close)
            content = self.posix.buf
            assert content is not None
            content[: len(self.secret)] = self.secret.encode()
            del content  # a view keeps the memory from being closed
            yield self

    def _sockets(self) -> dict[str, socket.socket]:
        tcp = socket.create_server(("127.0.0.1", 0))
        udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        udp.bind(("127.0.0.1", 0))
        unix, unix_datagram, abstract, abstract_datagram = (
            socket.socket(socket.AF_UNIX, kind)
            for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM, socket.SOCK_STREAM, socket.SOCK_DGRAM)
        )
        unix.bind(str(self.folder / "socket"))
        unix_datagram.bind(str(self.folder / "datagram"))
        self.abstract = f"limelight-{uuid4().hex}"
        abstract.bind(f"\0{self.abstract}")
        abstract_datagram.bind(f"\0{self.abstract}-datagram")
        for stream in (unix, abstract):
            stream.listen()
        found = {"tcp": tcp, "udp": udp, "unix": unix, "unix_datagram": unix_datagram, "abstract": abstract}
        return {**found, "abstract_datagram": abstract_datagram}

    def target(self, level: str) -> dict[str, Any]:
        """Describe everything for the code of attacks."""
        return {
            "secret_backwards": self.secret[::-1],
            "outside": str(self.folder),
            "database": str(self.database),
            "config": str(self.config),
            "home": str(self.folder / "home"),
            "other_workspace": str(self.folder / "other_workspace"),
            "library": str(self.library),
            "server_pid": os.getpid(),
            "server_fd": self.server_fd,
            "server_address": ctypes.addressof(ctypes.c_char.from_buffer(self.page)),
            "victim_pid": self.victim.pid,
            "is_shared_pid": level == "landlock",
            "shared_memory": self.memory,
            "posix_memory": self.posix.name,
            "tcp_port": self.sockets["tcp"].getsockname()[1],
            "udp_port": self.sockets["udp"].getsockname()[1],
            "unix_socket": str(self.folder / "socket"),
            "unix_datagram": str(self.folder / "datagram"),
            "abstract": self.abstract,
            "abstract_datagram": f"{self.abstract}-datagram",
        }

    def state(self) -> dict[str, object]:
        """Describe everything that an attack might change."""
        files = {str(file): (file.read_text(), *_metadata(file)) for file in self.files}
        names = sorted(str(path) for root in (self.folder, self.library) for path in root.rglob("*"))
        libraries = [Path(path, "planted") for path in ("/usr", "/etc")]
        return {
            "files": files,
            "names": names,
            "planted": [str(path) for path in libraries if path.exists()],
            "victim": self._victim_state(),
            "server": (os.getpriority(os.PRIO_PROCESS, 0), Path("/proc/self/limits").read_text()),
            "hostname": socket.gethostname(),
            "memory": bytes(self.page[: len(self.secret)]),
            "sockets": {name: _is_reached(listening) for name, listening in self.sockets.items()},
        }

    def _victim_state(self) -> tuple[object, ...]:
        if (code := self.victim.poll()) is not None:
            return ("ended", code)
        return (
            os.getpriority(os.PRIO_PROCESS, self.victim.pid),
            os.sched_getaffinity(self.victim.pid),
            os.sched_getscheduler(self.victim.pid),
            Path(f"/proc/{self.victim.pid}/limits").read_text(),
        )


def _metadata(file: Path) -> tuple[object, ...]:
    about = file.stat()
    names = os.listxattr(file) if hasattr(os, "listxattr") else []
    return about.st_mode, about.st_uid, about.st_gid, about.st_mtime_ns, about.st_nlink, names


def _is_reached(listening: socket.socket) -> bool:
    listening.setblocking(False)
    try:
        if listening.type == socket.SOCK_DGRAM:
            return bool(listening.recv(100))
        listening.accept()[0].close()
        return True
    except BlockingIOError:
        return False


def processes_in(folder: Path) -> list[int]:
    """Return the processes whose working folder is this one."""
    found: list[int] = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            with contextlib.suppress(OSError):
                if (entry / "cwd").readlink() == folder and "Z" not in _state(entry):
                    found.append(int(entry.name))
    return found


def _state(entry: Path) -> str:
    return (entry / "stat").read_bytes().rpartition(b")")[2].split()[0].decode()


def states_of_threads(pid: int) -> set[str]:
    """Return the states of all threads of a process, such as `S` (sleeping) and `T` (stopped)."""
    found: set[str] = set()
    for entry in Path(f"/proc/{pid}/task").iterdir():
        with contextlib.suppress(OSError):  # it has ended
            found.add(_state(entry))
    return found


def run_patched_runner(program: str, launch: Launch) -> "subprocess.CompletedProcess[bytes]":
    """Run a program that changes the command runner and then calls it, with the arguments of a launch."""
    arguments = launch.argv[launch.argv.index("limelight.sandbox.command_runner") + 1 :]
    read_end, write_end = os.pipe()
    try:
        return subprocess.run(
            [sys.executable, "-c", program, *arguments],
            env=launch.env,
            cwd="/",
            stdin=read_end,
            capture_output=True,
            timeout=DEADLINE,
            start_new_session=True,
            check=False,
        )
    finally:
        os.close(read_end)
        os.close(write_end)
