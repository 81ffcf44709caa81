"""Approvals at a terminal: what is asked, what may be answered, and that the view stays whole."""

from pathlib import Path

import pytest

from limelight.client import SyncClient
from tests.cli.terminal import Terminal
from tests.support import agents

CHOICES = "[a]pprove  [e]dit  [r]eject"


def run(asking: str, folder: Path, *options: str, editor: str = "") -> Terminal:
    return Terminal("run", "go", "--session", "s", "--url", asking, *options, folder=folder, editor=editor)


def waiting(url: str) -> tuple[str, str]:
    """The run that waits, and its first question."""
    with SyncClient(url) as client:
        run_id = client.session("s").run_id or ""
        return run_id, client.run(run_id).approvals[0].approval_id


@pytest.mark.parametrize("word", ["a", "approve", " A "])
def test_yes(asking: str, tmp_path: Path, word: str) -> None:
    with run(asking, tmp_path) as terminal:
        terminal.see("┃ asker asks for approval: delete")
        terminal.see("┃   path = /tmp/x")
        terminal.see("┃ Without an answer it is a no in ")
        terminal.see(f"┃ {CHOICES}")
        terminal.type(f"{word}\n")
        assert terminal.end() == 0
        lines = terminal.screen.splitlines()
        assert lines[0] == "● asker  go"
        assert lines[1].startswith("✓ delete /tmp/x  ")
        assert lines[2:4] == ["  ✓ approved by local", "decision: approve by local"]
        assert lines[4].startswith("Finished in ")
        assert len(lines) == 5
        assert terminal.is_as_before


def test_no_with_a_reason(asking: str, tmp_path: Path) -> None:
    with run(asking, tmp_path) as terminal:
        terminal.see(CHOICES)
        terminal.type("r\n")
        terminal.see("Why not?")
        terminal.type("too riskyyy\x7f\x7f\n")
        assert terminal.end() == 0
        assert "  ✗ rejected by local: too risky\n" in terminal.screen
        assert "┃" not in terminal.screen


def test_other_arguments_on_one_line(asking: str, tmp_path: Path) -> None:
    with run(asking, tmp_path) as terminal:
        terminal.see(CHOICES)
        terminal.type("e\n")
        terminal.see('┃ > {"path":"/tmp/x"}')
        terminal.type("\x7f\n")
        terminal.see("That is no JSON object: ")
        terminal.type("\x1b")
        terminal.see(CHOICES)
        terminal.type("e\n")
        terminal.see('┃ > {"path":"/tmp/x"}')
        terminal.type('\x7f\x7f\x7fy.txt"}\n')
        assert terminal.end() == 0
        assert "✓ delete /tmp/y.txt" in terminal.screen
        assert "  ✓ approved with changes by local\n" in terminal.screen


def test_other_arguments_in_an_editor(asking: str, tmp_path: Path) -> None:
    editor = tmp_path / "editor.sh"
    editor.write_text("#!/bin/sh\nsed -i 's/: .*/: oops/' \"$1\"\n")
    editor.chmod(0o755)
    with run(asking, tmp_path, editor=str(editor)) as terminal:
        terminal.see(CHOICES)
        terminal.type("e\n")
        terminal.see("That is no JSON object: Expecting value in line 2, column 11")
        editor.write_text('#!/bin/sh\nsed -i \'s/oops/"z.txt"/\' "$1"\n')
        terminal.type("e\n")
        assert terminal.end() == 0
        assert "✓ delete z.txt" in terminal.screen
        assert "Waiting for the editor" not in terminal.screen
        assert terminal.is_as_before


def test_two_questions_one_after_the_other(asking: str, tmp_path: Path) -> None:
    with run(asking, tmp_path, "--agent", "twice") as terminal:
        terminal.see("asks for approval: send_mail")
        terminal.see("? publish needs an approval (apr_")
        terminal.see("[s]how all")
        terminal.type("s\n")
        terminal.see("All arguments of send_mail:\n  to = ann\n  text =\n    one\n    two\n    long long")
        terminal.type("ls -la\n")
        terminal.see("Type the first letter of what you decide, then Enter.")
        terminal.type("a\n")
        terminal.see("asks for approval: publish")
        terminal.see("┃ [a]pprove  [r]eject\n")
        terminal.type("e\n")
        terminal.see("Type the first letter")
        terminal.type("r\n")
        terminal.see("Why not?")
        terminal.type("\n")
        assert terminal.end() == 0
        assert "mail: approve to ann, publish: reject," in terminal.screen
        assert "✗ publish rejected by local\n" in terminal.screen


def test_the_question_goes_when_somebody_else_decides(asking: str, tmp_path: Path) -> None:
    with run(asking, tmp_path) as terminal, SyncClient(asking) as client:
        terminal.see(CHOICES)
        terminal.type("r\n")
        terminal.see("Why not?")
        terminal.type("half a rea")
        terminal.see("half a rea")
        client.reject(*waiting(asking), "I was faster")
        assert terminal.end() == 0
        assert "┃" not in terminal.screen
        assert "  ✗ rejected by local: I was faster\n" in terminal.screen
        assert "half a rea" not in terminal.screen
        assert terminal.is_as_before


def test_ctrl_c_at_the_question_stops_the_run(asking: str, tmp_path: Path) -> None:
    with run(asking, tmp_path) as terminal:
        terminal.see(CHOICES)
        terminal.type("\x03")
        assert terminal.end() == 3
        assert "Stopping the run …" in terminal.screen
        assert "┃" not in terminal.screen
        assert terminal.screen.splitlines()[-1].startswith("Stopped after ")
        assert terminal.is_as_before


def test_watch_shows_the_question_and_decides_if_it_may(asking: str, tmp_path: Path) -> None:
    with SyncClient(asking) as client:
        client.start("go", session_id="s")
        with Terminal("watch", "s", "--once", "--url", asking, folder=tmp_path) as looking:
            looking.see("? needs an approval (apr_")
            assert "┃" not in looking.screen
            with Terminal("watch", "s", "--once", "--decide", "--url", asking, folder=tmp_path) as terminal:
                terminal.see(CHOICES)
                terminal.type("a\n")
                assert terminal.end() == 0
            assert looking.end() == 0
            assert "  ✓ approved by local\n" in looking.screen
        with Terminal("watch", "s", "--once", "--decide", "--url", asking, folder=tmp_path) as terminal:
            assert terminal.end() == 0  # of what is long decided nothing is asked
            assert "  ✓ approved by local\n" in terminal.screen


def test_leaving_watch_at_the_question_stops_nothing(asking: str, tmp_path: Path) -> None:
    with SyncClient(asking) as client:
        run = client.start("go", session_id="s")
        with Terminal("watch", "s", "--decide", "--url", asking, folder=tmp_path) as terminal:
            terminal.see(CHOICES)
            terminal.type("\x03")
            assert terminal.end() == 0
            assert terminal.is_as_before
        assert client.run(run.run_id).state == "waiting"


def test_the_question_goes_when_the_time_is_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LIMELIGHT_APPROVAL_SECONDS", "3")
    with Terminal("run", "go", "--target", f"{agents.__file__}:asker", folder=tmp_path) as terminal:
        terminal.see(CHOICES)
        assert terminal.end() == 0
        assert "  ✗ rejected: nobody decided in time\n" in terminal.screen
        assert "┃" not in terminal.screen
        assert terminal.is_as_before


def test_an_editor_is_left_alone_while_somebody_else_decides(asking: str, tmp_path: Path) -> None:
    editor, may_close = tmp_path / "editor.sh", tmp_path / "may_close"
    editor.write_text(f"#!/bin/sh\necho editing\nwhile [ ! -e {may_close} ]; do sleep 0.05; done\n")
    editor.chmod(0o755)
    with run(asking, tmp_path, editor=str(editor)) as terminal, SyncClient(asking) as client:
        terminal.see(CHOICES)
        terminal.type("e\n")
        terminal.see("editing")
        client.approve(*waiting(asking))
        list(client.follow(client.session("s").run_id or ""))
        assert "Finished" not in terminal.screen
        may_close.touch()
        assert terminal.end() == 0
        assert "  ✓ approved by local\n" in terminal.screen
        assert "Finished in " in terminal.screen
        assert terminal.is_as_before
