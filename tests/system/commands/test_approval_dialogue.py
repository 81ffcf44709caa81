"""The approval dialogue of `run` and `watch` in a terminal."""

from pathlib import Path

import pytest

from limelight.client import SyncClient
from tests.support import agents
from tests.system.commands.terminal import Terminal

CHOICES = "[a]pprove  [e]dit  [r]eject"


def run(approval_server: str, folder: Path, *options: str, editor: str = "") -> Terminal:
    return Terminal("run", "go", "--session", "s", "--url", approval_server, *options, folder=folder, editor=editor)


def open_approval(url: str) -> tuple[str, str]:
    """The ids of the run that waits and of its first open request."""
    with SyncClient(url) as client:
        run_id = client.session("s").run_id or ""
        return run_id, client.run(run_id).approvals[0].approval_id


@pytest.mark.parametrize("word", ["a", "approve", " A "])
def test_dialogue_approves_by_a_word_or_its_first_letter(approval_server: str, tmp_path: Path, word: str) -> None:
    with run(approval_server, tmp_path) as terminal:
        terminal.wait_for("┃ asker asks for approval: delete")
        terminal.wait_for("┃   path = /tmp/x")
        terminal.wait_for("┃ Without a decision it is rejected in ")
        terminal.wait_for(f"┃ {CHOICES}")
        terminal.type(f"{word}\n")
        assert terminal.wait() == 0
        lines = terminal.screen.splitlines()
        assert lines[0] == "● asker  go"
        assert lines[1].startswith("✓ delete /tmp/x  ")
        assert lines[2:4] == ["  ✓ approved by local", "decision: approve by local"]
        assert lines[4].startswith("Finished in ")
        assert len(lines) == 5
        assert terminal.modes_restored


def test_dialogue_rejects_with_a_reason(approval_server: str, tmp_path: Path) -> None:
    with run(approval_server, tmp_path) as terminal:
        terminal.wait_for(CHOICES)
        terminal.type("r\n")
        terminal.wait_for("Reason for the agent.")
        terminal.type("too riskyyy\x7f\x7f\n")
        assert terminal.wait() == 0
        assert "  ✗ rejected by local: too risky\n" in terminal.screen
        assert "┃" not in terminal.screen


def test_dialogue_edits_arguments_in_the_line_without_an_editor(approval_server: str, tmp_path: Path) -> None:
    with run(approval_server, tmp_path) as terminal:
        terminal.wait_for(CHOICES)
        terminal.type("e\n")
        terminal.wait_for('┃ > {"path":"/tmp/x"}')
        terminal.type("\x7f\n")
        terminal.wait_for("That is not a JSON object: ")
        terminal.type("\x1b")
        terminal.wait_for(CHOICES)
        terminal.type("e\n")
        terminal.wait_for('┃ > {"path":"/tmp/x"}')
        terminal.type('\x7f\x7f\x7fy.txt"}\n')
        assert terminal.wait() == 0
        assert "✓ delete /tmp/y.txt" in terminal.screen
        assert "  ✓ approved with changes by local\n" in terminal.screen


def test_dialogue_edits_arguments_in_the_editor_until_they_are_valid(approval_server: str, tmp_path: Path) -> None:
    editor = tmp_path / "editor.sh"
    editor.write_text("#!/bin/sh\nsed -i 's/: .*/: oops/' \"$1\"\n")
    editor.chmod(0o755)
    with run(approval_server, tmp_path, editor=str(editor)) as terminal:
        terminal.wait_for(CHOICES)
        terminal.type("e\n")
        terminal.wait_for("That is not a JSON object: Expecting value in line 2, column 11")
        editor.write_text('#!/bin/sh\nsed -i \'s/oops/"z.txt"/\' "$1"\n')
        terminal.type("e\n")
        assert terminal.wait() == 0
        assert "✓ delete z.txt" in terminal.screen
        assert "Waiting for the editor" not in terminal.screen
        assert terminal.modes_restored


def test_empty_file_in_the_editor_abandons_the_edit_with_a_note(approval_server: str, tmp_path: Path) -> None:
    editor = tmp_path / "editor.sh"
    editor.write_text('#!/bin/sh\necho > "$1"\n')
    editor.chmod(0o755)
    with run(approval_server, tmp_path, editor=str(editor)) as terminal:
        terminal.wait_for(CHOICES)
        terminal.type("e\n")
        terminal.wait_for("The file was empty, so nothing was changed.")
        editor.write_text("#!/bin/sh\nsed -i 's/tmp.x/tmp\\/z/' \"$1\"\n")
        terminal.type("e\n")
        assert terminal.wait() == 0
        assert "✓ delete /tmp/z" in terminal.screen


def test_dialogue_asks_two_requests_one_after_the_other(approval_server: str, tmp_path: Path) -> None:
    with run(approval_server, tmp_path, "--agent", "twice") as terminal:
        terminal.wait_for("asks for approval: send_mail")
        terminal.wait_for("? publish needs an approval (apr_")
        terminal.wait_for("[s]how all")
        terminal.type("s\n")
        terminal.wait_for("All arguments of send_mail:\n  to = ann\n  text =\n    one\n    two\n    long long")
        terminal.type("ls -la\n")
        terminal.wait_for("Type the first letter of what you decide, then Enter.")
        terminal.type("a\n")
        terminal.wait_for("asks for approval: publish")
        terminal.wait_for("┃ [a]pprove  [r]eject\n")
        terminal.type("e\n")
        terminal.wait_for("Type the first letter")
        terminal.type("r\n")
        terminal.wait_for("Reason for the agent.")
        terminal.type("\n")
        assert terminal.wait() == 0
        assert "mail: approve to ann, publish: reject," in terminal.screen
        assert "✗ publish rejected by local\n" in terminal.screen


def test_dialogue_ends_when_the_request_is_decided_elsewhere(approval_server: str, tmp_path: Path) -> None:
    with run(approval_server, tmp_path) as terminal, SyncClient(approval_server) as client:
        terminal.wait_for(CHOICES)
        terminal.type("r\n")
        terminal.wait_for("Reason for the agent.")
        terminal.type("half a rea")
        terminal.wait_for("half a rea")
        client.reject(*open_approval(approval_server), "I was faster")
        assert terminal.wait() == 0
        assert "┃" not in terminal.screen
        assert "  ✗ rejected by local: I was faster\n" in terminal.screen
        assert "half a rea" not in terminal.screen
        assert terminal.modes_restored


def test_ctrl_c_in_the_dialogue_stops_the_run(approval_server: str, tmp_path: Path) -> None:
    with run(approval_server, tmp_path) as terminal:
        terminal.wait_for(CHOICES)
        terminal.type("\x03")
        assert terminal.wait() == 3
        assert "Stopping the run …" in terminal.screen
        assert "┃" not in terminal.screen
        assert terminal.screen.splitlines()[-1].startswith("Stopped after ")
        assert terminal.modes_restored


def test_watch_shows_a_request_and_decides_it_with_decide(approval_server: str, tmp_path: Path) -> None:
    with SyncClient(approval_server) as client:
        client.start("go", session_id="s")
        with Terminal("watch", "s", "--once", "--url", approval_server, folder=tmp_path) as viewer:
            viewer.wait_for("? needs an approval (apr_")
            assert "┃" not in viewer.screen
            with Terminal("watch", "s", "--once", "--decide", "--url", approval_server, folder=tmp_path) as terminal:
                terminal.wait_for(CHOICES)
                terminal.type("a\n")
                assert terminal.wait() == 0
            assert viewer.wait() == 0
            assert "  ✓ approved by local\n" in viewer.screen
        with Terminal("watch", "s", "--once", "--decide", "--url", approval_server, folder=tmp_path) as terminal:
            assert terminal.wait() == 0  # nothing is open any more
            assert "  ✓ approved by local\n" in terminal.screen


def test_ctrl_c_in_the_dialogue_of_watch_does_not_stop_the_run(approval_server: str, tmp_path: Path) -> None:
    with SyncClient(approval_server) as client:
        run = client.start("go", session_id="s")
        with Terminal("watch", "s", "--decide", "--url", approval_server, folder=tmp_path) as terminal:
            terminal.wait_for(CHOICES)
            terminal.type("\x03")
            assert terminal.wait() == 0
            assert terminal.modes_restored
        assert client.run(run.run_id).state == "waiting"


def test_dialogue_ends_when_the_request_expires(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LIMELIGHT_APPROVAL_SECONDS", "6")
    with Terminal("run", "go", "--target", f"{agents.__file__}:asker", folder=tmp_path) as terminal:
        terminal.wait_for(CHOICES)
        assert terminal.wait() == 0
        assert "  ✗ rejected: no decision in time\n" in terminal.screen
        assert "┃" not in terminal.screen
        assert terminal.modes_restored


def test_editor_stays_open_when_the_request_is_decided_elsewhere(approval_server: str, tmp_path: Path) -> None:
    editor, may_close = tmp_path / "editor.sh", tmp_path / "may_close"
    editor.write_text(f"#!/bin/sh\necho editing\nwhile [ ! -e {may_close} ]; do sleep 0.05; done\n")
    editor.chmod(0o755)
    with run(approval_server, tmp_path, editor=str(editor)) as terminal, SyncClient(approval_server) as client:
        terminal.wait_for(CHOICES)
        terminal.type("e\n")
        terminal.wait_for("editing")
        client.approve(*open_approval(approval_server))
        list(client.follow(client.session("s").run_id or ""))
        assert "Finished" not in terminal.screen
        may_close.touch()
        assert terminal.wait() == 0
        assert "  ✓ approved by local\n" in terminal.screen
        assert "Finished in " in terminal.screen
        assert terminal.modes_restored
