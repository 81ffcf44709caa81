"""The sandbox of an agent: its level and what its code may use."""

from pathlib import Path

import msgspec

from limelight.sandbox.launch import Launch, launch, readable_paths
from limelight.sandbox.levels import Choice, choose_level
from limelight.sandbox.policy import Level, Limits, Policy
from limelight.sandbox.process import WorkerProcess


class Sandbox(msgspec.Struct, frozen=True, kw_only=True):
    """Settings from which sandboxes are started, one for each conversation or command."""

    choice: Choice = "auto"
    network: bool = False
    limits: Limits = Limits()
    read_only: tuple[str, ...] = ()
    """Files and folders that code may read, besides the interpreter and its libraries."""
    hidden: tuple[str, ...] = ()
    """Files and folders that code must not read: the data folder and the configuration."""

    @property
    def level(self) -> Level:
        """The level of these sandboxes. The first call may take a second: it starts a sandbox as a probe."""
        return choose_level(self.choice).level

    def policy(self, workspace: Path) -> Policy:
        """Return the policy of a sandbox that works in a folder."""
        return Policy(
            workspace=str(workspace.resolve()),
            read_only=readable_paths(self.read_only, network=self.network),
            hidden=self.hidden,
            network=self.network,
            limits=self.limits,
        )

    def start_worker(self, workspace: Path) -> WorkerProcess:
        """Start a worker for Python code. Raises SetupError or OSError."""
        return WorkerProcess(launch(self.level, self.policy(workspace), "worker"))

    def command(self, workspace: Path, command: str) -> Launch:
        """Return how to start a shell command."""
        return launch(self.level, self.policy(workspace), "command_runner", [command])
