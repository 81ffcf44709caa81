"""An agent whose file makes the housekeeping rounds of its server short: a test does not wait ten seconds for one."""

import os

from limelight.runs import keeping
from tests.faults.cast import hello

__all__ = ["hello"]

if "CLOCK" in os.environ:  # in a server's process only, not in that of the test
    keeping.LEASE_MS = 600
