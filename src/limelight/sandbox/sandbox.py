"""The sandbox of an agent: its settings and level, and the start of workers and commands in it."""

from pathlib import Path

import msgspec

from limelight.models import LOCAL_OWNER
from limelight.sandbox.launch import Launch, launch, readable_paths
from limelight.sandbox.levels import Availability, LevelSetting, choose_level
from limelight.sandbox.policy import Level, Limits, Policy
from limelight.sandbox.process import WorkerProcess, kill_session
from limelight.sandbox.quota import SandboxQuota


class Sandbox(msgspec.Struct, frozen=True, kw_only=True):
    """The settings with which an agent's sandboxes are started, one for each conversation or command."""

    choice: LevelSetting = "auto"
    network: bool = False
    limits: Limits = Limits()
    read_only: tuple[str, ...] = ()
    """Files and folders that code may read, besides the interpreter and its libraries."""
    hidden: tuple[str, ...] = ()
    """Files and folders that code must not read: the data folder and the configuration."""
    quota: SandboxQuota = msgspec.field(default_factory=SandboxQuota)
    """The limit of sandboxes that exist at the same time, which the sandboxes of all agents share."""

    @property
    def level(self) -> Level:
        """The level of confinement of these sandboxes. The first call may take a second, as it probes the levels."""
        return self.availability.level

    @property
    def availability(self) -> Availability:
        """The level, and why it is not the strongest one."""
        return choose_level(self.choice)

    def policy(self, workspace: Path) -> Policy:
        """Return the policy of a sandbox that works in a folder."""
        return Policy(
            workspace=str(workspace.resolve()),
            read_only=readable_paths(self.read_only, network=self.network),
            hidden=self.hidden,
            network=self.network,
            limits=self.limits,
        )

    def start_worker(self, workspace: Path, user_id: str = LOCAL_OWNER) -> WorkerProcess:
        """Start a worker for Python code of a user. Raises SetupError, OSError, or AgentFailed for too many."""
        give_back = self.quota.take(user_id)
        try:
            return WorkerProcess(launch(self.level, self.policy(workspace), "worker"), on_killed=give_back)
        except BaseException:
            give_back()
            raise

    def command(self, workspace: Path, command: str) -> Launch:
        """Return how to start a shell command. The caller counts it with `quota`."""
        return launch(self.level, self.policy(workspace), "command_runner", [command])


def kill_rest_of_command(runner: int) -> None:
    """Kill what a command has left, whose runner with this process id has ended, in case the runner was killed."""
    kill_session(runner)
