"""`limelight approve`, and `limelight run --approve`, without a terminal."""

import json
import re
import threading
from collections.abc import Iterator
from pathlib import Path
from queue import Queue

import pytest

from limelight.cli import approval_dialogue
from limelight.client import SyncClient
from tests.cli.conftest import twice
from tests.cli.runner import limelight
from tests.client.server_thread import serve_in_thread
from tests.support import agents


@pytest.fixture(scope="module")
def approval_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with serve_in_thread(agents.asker, twice, data=tmp_path_factory.mktemp("server")) as served:
        yield served.url


def waiting_run(client: SyncClient, agent: str = "asker") -> str:
    """The id of a run that waits for its approvals."""
    run = client.start("go", agent=agent)
    for _ in run:
        if len(client.run(run.run_id).approvals) == {"asker": 1, "twice": 2}[agent]:
            break
    return run.run_id


@pytest.mark.parametrize(
    ("options", "said", "answer"),
    [
        ((), "delete approved (", "decision: approve by local"),
        (("--edit", '{"path": "y"}'), "delete approved with changes (", "decision: edit by local"),
        (("--edit", "-"), "delete approved with changes (", "decision: edit by local"),
        (("--reject", "too risky"), "delete rejected (", "decision: reject by local"),
        (("--reject", ""), "delete rejected (", "decision: reject by local"),
    ],
)
def test_approve_decides_the_only_open_request(
    approval_server: str, tmp_path: Path, options: tuple[str, ...], said: str, answer: str
) -> None:
    with SyncClient(approval_server) as client:
        run_id = waiting_run(client)
        done = limelight("approve", run_id, *options, "--url", approval_server, folder=tmp_path, stdin=b'{"path": "y"}')
        assert done.stdout.startswith(said)
        assert done.stdout.splitlines()[1:] == (["  path = y  (was /tmp/x)"] if "--edit" in options else [])
        list(client.follow(run_id))
        assert client.answer(run_id) == answer
        again = limelight("approve", run_id, "--url", approval_server, folder=tmp_path, code=2).stderr
        assert again == f"limelight: no approval request is open: {run_id} is finished\n"


def test_approve_of_several_open_requests_needs_an_id(approval_server: str, tmp_path: Path) -> None:
    with SyncClient(approval_server) as client:
        run_id = waiting_run(client, "twice")
        mail, publish = client.run(run_id).approvals
        which = limelight("approve", run_id, "--url", approval_server, folder=tmp_path, code=2)
        assert "2 requests are open" in which.stderr
        listed = limelight("approve", run_id, "--list", "--url", approval_server, folder=tmp_path).stdout
        assert listed == which.stdout
        assert listed.startswith(
            f"{mail.approval_id}  send_mail  (approve, edit, reject)\n  to = ann\n  text =\n    one\n"
        )
        assert f"{publish.approval_id}  publish  (approve, reject)\n  page = 1\n" in listed
        lines = limelight(
            "approve", run_id, "--list", "--json", "--url", approval_server, folder=tmp_path
        ).stdout.splitlines()
        assert [json.loads(line)["name"] for line in lines] == ["send_mail", "publish"]

        options = ("--edit", "{}", "--url", approval_server)
        refused = limelight("approve", run_id, publish.approval_id, *options, folder=tmp_path, code=2).stderr
        assert refused == "limelight: publish can be answered with approve, reject\n"
        done = limelight(
            "approve", run_id, publish.approval_id, "--json", "--url", approval_server, folder=tmp_path
        ).stdout
        expected = {"run_id": run_id, "approval_id": publish.approval_id, "name": "publish", "decision": "approve"}
        assert json.loads(done) == expected
        late = limelight("approve", run_id, publish.approval_id, "--url", approval_server, folder=tmp_path, code=2)
        assert late.stderr == "limelight: publish was decided already\n"
        assert limelight("approve", run_id, "--url", approval_server, folder=tmp_path).stdout.startswith(
            "send_mail approved ("
        )


@pytest.mark.parametrize(
    ("options", "hint"),
    [
        (("run_x",), "run_x"),
        (("run_x", "--edit", "[]"), "That is not a JSON object"),
        (("run_x", "--edit", "{}", "--reject", ""), "exclude each other"),
    ],
)
def test_invalid_approve_commands_print_one_line(
    approval_server: str, tmp_path: Path, options: tuple[str, ...], hint: str
) -> None:
    (line,) = limelight("approve", *options, "--url", approval_server, folder=tmp_path, code=2).stderr.splitlines()
    assert line.startswith("limelight: ")
    assert hint in line


@pytest.mark.parametrize(
    ("approve", "line"),
    [("all", "✓ delete approved by local"), ("none", "✗ delete rejected by local: no person was available to decide")],
)
def test_run_approves_or_rejects_all_requests(approval_server: str, tmp_path: Path, approve: str, line: str) -> None:
    done = limelight("run", "go", "--approve", approve, "--url", approval_server, folder=tmp_path)
    assert line in done.stdout.splitlines()
    assert done.stderr == ""


@pytest.mark.parametrize("form", ["--plain", "--json"])
def test_run_without_a_terminal_prints_the_command_that_decides(
    approval_server: str, tmp_path: Path, form: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines: Queue[str] = Queue()

    def approve_command(url: str, approval: approval_dialogue.OpenApproval) -> str:
        lines.put(f"{url} {approval.run_id} {approval.approval_id}")
        return real_command(url, approval)

    def approve() -> None:
        url, run_id, approval_id = lines.get(timeout=30).split()
        with SyncClient(url) as client:
            client.approve(run_id, approval_id)

    real_command = approval_dialogue.approve_command
    monkeypatch.setattr(approval_dialogue, "approve_command", approve_command)
    approving = threading.Thread(target=approve)
    approving.start()
    done = limelight("run", "go", form, "--url", approval_server, folder=tmp_path)
    approving.join(30)
    assert re.fullmatch(
        rf"delete waits for a decision: limelight approve run_\S+ apr_\S+ --url {approval_server}\n", done.stderr
    )


def test_watch_refuses_decide_without_a_terminal(approval_server: str, tmp_path: Path) -> None:
    with SyncClient(approval_server) as client:
        client.start("go", session_id="s")
    refused = limelight("watch", "s", "--decide", "--url", approval_server, folder=tmp_path, code=2).stderr
    assert refused == "limelight: --decide needs a terminal; elsewhere `limelight approve RUN` decides\n"
