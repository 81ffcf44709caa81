"""The end of a process by a time that is set."""

import subprocess
import sys

HELD = """
import time
from limelight.server.process.uvicorn_server import force_exit_after
from limelight.stores.base import EXIT_LOCK
with EXIT_LOCK:
    force_exit_after(0.1)
    time.sleep(1)
    print("written", flush=True)
time.sleep(60)
"""


def test_what_must_not_be_cut_off_is_waited_for() -> None:
    ended = subprocess.run([sys.executable, "-c", HELD], capture_output=True, text=True, timeout=30, check=False)
    assert (ended.returncode, ended.stdout) == (1, "written\n")
