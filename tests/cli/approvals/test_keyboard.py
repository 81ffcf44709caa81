"""The keyboard, where there is none of the kind that it needs."""

import subprocess
import sys

WITHOUT = """
import sys
sys.modules["termios"] = sys.modules["tty"] = None  # as on Windows
from limelight.cli.approvals.dialogue import Asking
from limelight.cli.approvals.keyboard import somebody_is_there
print(somebody_is_there())
"""


def test_without_a_unix_terminal_it_can_be_imported_and_nobody_is_there() -> None:
    done = subprocess.run([sys.executable, "-c", WITHOUT], capture_output=True, text=True, timeout=60, check=False)
    assert (done.stdout, done.stderr) == ("False\n", "")
