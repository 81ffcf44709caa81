"""An agent whose file makes the housekeeping rounds of its server short: a test does not wait ten seconds for one."""

import os

from limelight.runs import maintenance
from tests.system.processes.agents import hello

__all__ = ["hello"]

if "CLOCK" in os.environ:  # in a server's process only, not in that of the test
    maintenance.LEASE_MS = 600
