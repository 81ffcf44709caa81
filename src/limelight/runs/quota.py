"""How much one user, and all together, may have at once. Pure; `sessions` and the server ask before they begin one.

The user `local` is the machine's own, or a backend with the key of the settings: for them only what all share counts.
"""

import msgspec

from limelight.errors import TooManyRuns, TooManyStreams
from limelight.models import LOCAL_OWNER

SOON = 5
"""Seconds after which it is worth trying again when runs have to end first."""


class Quota(msgspec.Struct, frozen=True, kw_only=True):
    """The limits, with the refusals of those that are counted here."""

    runs: int = 500
    runs_per_user: int = 20
    waiting_per_user: int = 50
    sessions_per_user: int = 10_000
    streams_per_user: int = 100

    def check_runs(self, owner: str, own: int, all_: int) -> None:
        """`own` and `all_` are those that go on now."""
        if all_ >= self.runs:
            raise TooManyRuns(f"{self.runs} runs go on at once, which is all that this server takes", retry_after=SOON)
        if owner != LOCAL_OWNER and own >= self.runs_per_user:
            told = f"you have {self.runs_per_user} runs at once, which is the limit: wait for one to end, or stop one"
            raise TooManyRuns(told, retry_after=SOON)

    def check_waiting(self, owner: str, own: int) -> None:
        """`own` are the runs that wait for a person, and take no place among those at work, but some memory."""
        if owner != LOCAL_OWNER and own >= self.waiting_per_user:
            told = f"{self.waiting_per_user} runs of yours wait for a person, which is the limit: decide, or stop some"
            raise TooManyRuns(told, retry_after=SOON)

    def sessions_max(self, owner: str) -> int:
        """What the store is told, which counts sessions itself; 0 for no limit."""
        return 0 if owner == LOCAL_OWNER else self.sessions_per_user

    def check_streams(self, owner: str, own: int) -> None:
        if owner != LOCAL_OWNER and own >= self.streams_per_user:
            told = f"you have {self.streams_per_user} streams and sockets open, which is the limit: close some"
            raise TooManyStreams(told, retry_after=SOON)
