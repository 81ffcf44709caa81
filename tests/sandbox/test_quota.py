"""The number of sandboxes that exist at the same time is limited, for each user and for the server."""

from pathlib import Path

import pytest

from limelight.builtin.deepagents_backends import REFUSED_EXIT_CODE, SessionShellBackend
from limelight.errors import AgentFailed
from limelight.models import LOCAL_OWNER
from limelight.sandbox.quota import SandboxQuota
from limelight.sandbox.sandbox import Sandbox


def test_user_at_the_limit_gets_another_sandbox_when_one_ends() -> None:
    quota = SandboxQuota(total=10, per_user=1)
    give_back = quota.take("ann")
    with pytest.raises(AgentFailed, match=r"you have 1 sandboxes.*limits\.sandboxes_per_user"):
        quota.take("ann")
    quota.take("ben")
    give_back()
    quota.take("ann")


def test_server_at_its_limit_refuses_every_user() -> None:
    quota = SandboxQuota(total=2, per_user=2)
    quota.take(LOCAL_OWNER)
    quota.take(LOCAL_OWNER)
    for user in ("ann", LOCAL_OWNER):
        with pytest.raises(AgentFailed, match=r"limit of this server \(limits\.sandboxes\)"):
            quota.take(user)


def test_local_user_has_only_the_limit_of_the_server() -> None:
    quota = SandboxQuota(total=3, per_user=1)
    for _ in range(3):
        quota.take(LOCAL_OWNER)


@pytest.mark.requirement("sandbox-limits")
def test_worker_counts_until_it_is_killed(tmp_path: Path) -> None:
    sandbox = Sandbox(choice="none", quota=SandboxQuota(total=1))
    worker = sandbox.start_worker(tmp_path, "ann")
    with pytest.raises(AgentFailed):
        sandbox.start_worker(tmp_path, "ben")
    worker.kill()
    worker.kill()
    sandbox.start_worker(tmp_path, "ben").kill()


def test_worker_that_does_not_start_does_not_count(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise OSError("no process")

    sandbox = Sandbox(choice="none", quota=SandboxQuota(total=1))
    with monkeypatch.context() as patch:
        patch.setattr("limelight.sandbox.process.spawn", fail)
        with pytest.raises(OSError, match="no process"):
            sandbox.start_worker(tmp_path, "ann")
    sandbox.start_worker(tmp_path, "ann").kill()


@pytest.mark.requirement("sandbox-limits")
def test_command_beyond_the_limit_is_refused_and_counts_only_while_it_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(SessionShellBackend, "cwd", tmp_path)
    quota = SandboxQuota(total=1)
    backend = SessionShellBackend(Sandbox(choice="none", quota=quota), sample_files=False)
    for _ in range(2):
        assert (ended := backend.execute("echo done")).exit_code == 0, ended
    quota.take("ann")
    refused = backend.execute("echo done")
    assert refused.exit_code == REFUSED_EXIT_CODE
    assert "limit of this server" in refused.output
