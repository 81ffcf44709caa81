"""Decisions without a terminal: `limelight approve`, and `limelight run --approve`."""

import json
import subprocess
from pathlib import Path

import pytest

from limelight.client import SyncClient
from tests.cli.test_commands import command, limelight, wait_for


def waits(client: SyncClient, agent: str = "asker") -> str:
    """The id of a run that waits."""
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
def test_the_only_question(asking: str, tmp_path: Path, options: tuple[str, ...], said: str, answer: str) -> None:
    with SyncClient(asking) as client:
        run_id = waits(client)
        done = limelight("approve", run_id, *options, "--url", asking, folder=tmp_path, stdin=b'{"path": "y"}')
        assert done.stdout.decode().startswith(said)
        assert done.stdout.decode().splitlines()[1:] == (["  path = y  (was /tmp/x)"] if "--edit" in options else [])
        list(client.follow(run_id))
        assert client.answer(run_id) == answer
        again = limelight("approve", run_id, "--url", asking, folder=tmp_path, code=2).stderr.decode()
        assert again == f"limelight: nothing waits for a decision: {run_id} is finished\n"


def test_of_several_one_is_named(asking: str, tmp_path: Path) -> None:
    with SyncClient(asking) as client:
        run_id = waits(client, "twice")
        mail, publish = client.run(run_id).approvals
        which = limelight("approve", run_id, "--url", asking, folder=tmp_path, code=2)
        assert "2 questions are open" in which.stderr.decode()
        listed = limelight("approve", run_id, "--list", "--url", asking, folder=tmp_path).stdout.decode()
        assert listed == which.stdout.decode()
        assert listed.startswith(
            f"{mail.approval_id}  send_mail  (approve, edit, reject)\n  to = ann\n  text =\n    one\n"
        )
        assert f"{publish.approval_id}  publish  (approve, reject)\n  page = 1\n" in listed
        lines = limelight("approve", run_id, "--list", "--json", "--url", asking, folder=tmp_path).stdout.splitlines()
        assert [json.loads(line)["name"] for line in lines] == ["send_mail", "publish"]

        options = ("--edit", "{}", "--url", asking)
        refused = limelight("approve", run_id, publish.approval_id, *options, folder=tmp_path, code=2).stderr.decode()
        assert refused == "limelight: publish can be answered with approve, reject\n"
        done = limelight("approve", run_id, publish.approval_id, "--json", "--url", asking, folder=tmp_path).stdout
        expected = {"run_id": run_id, "approval_id": publish.approval_id, "name": "publish", "decision": "approve"}
        assert json.loads(done) == expected
        late = limelight("approve", run_id, publish.approval_id, "--url", asking, folder=tmp_path, code=2)
        assert late.stderr.decode() == "limelight: publish was decided already\n"
        assert limelight("approve", run_id, "--url", asking, folder=tmp_path).stdout.startswith(b"send_mail approved (")


@pytest.mark.parametrize(
    ("options", "hint"),
    [
        (("run_x",), "run_x"),
        (("run_x", "--edit", "[]"), "That is no JSON object"),
        (("run_x", "--edit", "{}", "--reject", ""), "exclude each other"),
    ],
)
def test_what_is_wrong_is_one_line(asking: str, tmp_path: Path, options: tuple[str, ...], hint: str) -> None:
    (line,) = limelight("approve", *options, "--url", asking, folder=tmp_path, code=2).stderr.decode().splitlines()
    assert line.startswith("limelight: ")
    assert hint in line


@pytest.mark.parametrize(
    ("approve", "line"),
    [("all", "✓ delete approved by local"), ("none", "✗ delete rejected by local: nobody was there to decide")],
)
def test_a_run_with_one_answer_to_everything(asking: str, tmp_path: Path, approve: str, line: str) -> None:
    done = limelight("run", "go", "--approve", approve, "--url", asking, folder=tmp_path)
    assert line in done.stdout.decode().splitlines()
    assert done.stderr == b""


@pytest.mark.parametrize("form", ["--plain", "--json"])
def test_where_nobody_can_be_asked_it_says_how_to_decide(asking: str, tmp_path: Path, form: str) -> None:
    out, err = tmp_path / "out", tmp_path / "err"
    with out.open("wb") as stdout, err.open("wb") as stderr:
        process = subprocess.Popen(command("run", "go", form, "--url", asking), stdout=stdout, stderr=stderr)
    try:
        wait_for(err, "\n")
        said = err.read_text()
        assert said.startswith("delete waits for a decision: limelight approve run_")
        assert limelight(*said.split("limelight ")[1].split(), folder=tmp_path).stdout.startswith(b"delete approved (")
        assert process.wait(20) == 0
        assert len(err.read_text().splitlines()) == 1
    finally:
        process.kill()
        process.wait(10)


def test_watch_decides_only_at_a_terminal(asking: str, tmp_path: Path) -> None:
    with SyncClient(asking) as client:
        client.start("go", session_id="s")
    refused = limelight("watch", "s", "--decide", "--url", asking, folder=tmp_path, code=2).stderr.decode()
    assert refused == "limelight: --decide needs a terminal; elsewhere `limelight approve RUN` decides\n"
