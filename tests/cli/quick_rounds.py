"""An agent whose file makes the housekeeping rounds of its server short: a test does not wait ten seconds for one."""

from limelight.runs import keeping
from tests.faults.cast import hello

__all__ = ["hello"]

keeping.LEASE_MS = 600
