"""Terminal input on systems without termios."""

import runpy
import sys

import pytest

from limelight.cli import terminal_input as terminal


def test_terminal_is_not_interactive_without_termios(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("termios", "tty"):
        monkeypatch.setitem(sys.modules, name, None)  # as on Windows
    assert terminal.__file__ is not None
    assert not runpy.run_path(terminal.__file__)["is_interactive"]()
