"""The processes of the benchmark: a server with API keys and limits, and the load generators of the noisy neighbour."""

from pathlib import Path
from types import TracebackType
from typing import Literal, Self

import msgspec

from benchmarks.load_process import LoadProcess
from benchmarks.noisy_neighbour.agents import MODES
from benchmarks.server_process import ROOT, LimelightServer
from limelight.auth.key_file import Keyring
from limelight.config.schema import LimitSettings

AGENTS = ROOT / "benchmarks" / "noisy_neighbour" / "agents.py"
LIMITS = ("runs_per_user", "streams_per_user", "body_bytes", "result_bytes")
Kind = Literal["streams", "requests", "flood"]


class LoadOrder(msgspec.Struct, kw_only=True):
    """An order for one load generator of the neighbour: which limits to reach, on which server."""

    kind: Kind
    port: int
    key: str
    runs: int
    """The limit of concurrent runs."""
    streams: int
    """The limit of concurrent streams."""
    body_bytes: int


class LoadReport(msgspec.Struct, kw_only=True):
    """The numbers of responses by kind of request and status, such as `body 200`."""

    answers: dict[str, int] = {}

    def count(self, what: str) -> None:
        self.answers[what] = self.answers.get(what, 0) + 1


class SharedServer(LimelightServer):
    """A server with the given limits, and with API keys for several users."""

    def __init__(self, limits: LimitSettings, core: int | None = None, tokens: int | None = None) -> None:
        environ = {f"LIMELIGHT_{name.upper()}": str(getattr(limits, name)) for name in LIMITS}
        environ |= {} if tokens is None else {"BENCH_TOKENS": str(tokens)}
        super().__init__(AGENTS, MODES, core, environ)
        self._keyring = Keyring(Path(self._folder.name))
        self.create_key("ben")  # a server without any keys would not require authentication

    def create_key(self, user: str) -> str:
        """Create an API key of this user."""
        return self._keyring.create(user, ("use",), 1)[1]


class NeighbourProcess(LoadProcess):
    """The process of one load generator of the neighbour, as a context manager."""

    def __init__(self, server: SharedServer, kind: Kind, key: str, limits: LimitSettings, core: int | None) -> None:
        super().__init__("benchmarks.noisy_neighbour.load_generator", core)
        self._order = LoadOrder(
            kind=kind,
            port=server.port,
            key=key,
            runs=limits.runs_per_user,
            streams=limits.streams_per_user,
            body_bytes=limits.body_bytes,
        )
        self.report = LoadReport()
        """The report, after the end of the block."""

    def __enter__(self) -> Self:
        super().__enter__()
        self.send(msgspec.json.encode(self._order))
        if not self._stdout.readline():
            self._process.wait()
            raise RuntimeError(f"the load generator for {self._order.kind} could not start")
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        output, _ = self._process.communicate()
        if error is None:
            self.report = msgspec.json.decode(output, type=LoadReport)
