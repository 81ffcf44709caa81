"""Agents of a server whose store does not close, as on a disk that hangs. Loading this file has this effect."""

import sys
import threading

from limelight.stores.sqlite.wal_checkpoints import Checkpoints
from tests.system.processes.agents import hello

__all__ = ["hello"]


def hang(self: Checkpoints) -> None:
    sys.stderr.write("the store hangs\n")
    sys.stderr.flush()
    threading.Event().wait()


Checkpoints.stop = hang
