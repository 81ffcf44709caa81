"""Limits of users and runs: quotas, sizes and time limits. Pure."""

import msgspec

from limelight.errors import TooManyRuns, TooManyStreams
from limelight.models import LOCAL_OWNER

RETRY_AFTER_SECONDS = 5
"""Seconds after which a client may retry a request that was refused temporarily."""
MAX_QUEUED = 5
"""Requests that may wait for the live run of their session to end."""


class RunLimits(msgspec.Struct, frozen=True, kw_only=True):
    """Time limits of a run, and size limits of its results and its session."""

    run_seconds: float = 3600
    silence_seconds: float = 300
    approval_seconds: float = 600
    result_max: int = 50 * 1024 * 1024
    session_max: int = 1024**3


class Quota(msgspec.Struct, frozen=True, kw_only=True):
    """Limits for the runs, sessions and streams that a user may have at once, and for all runs of the server.

    For the user `local` (requests without a key, or with the key of the settings) only the limit of the server applies.
    """

    runs: int = 500
    runs_per_user: int = 20
    waiting_per_user: int = 50
    sessions_per_user: int = 10_000
    streams_per_user: int = 100

    def check_runs(self, owner: str, own: int, all_: int) -> None:
        """Raise TooManyRuns if an owner, who has `own` live runs, or the server, with `all_`, has reached a limit."""
        if all_ >= self.runs:
            raise TooManyRuns(
                f"{self.runs} runs are live, which is the limit of this server", retry_after=RETRY_AFTER_SECONDS
            )
        if owner != LOCAL_OWNER and own >= self.runs_per_user:
            detail = f"you have {self.runs_per_user} runs at once, which is the limit: wait for one to end, or stop one"
            raise TooManyRuns(detail, retry_after=RETRY_AFTER_SECONDS)

    def check_suspended(self, owner: str, own: int) -> None:
        """Raise TooManyRuns if an owner with `own` runs that wait for a decision has reached the limit."""
        if owner != LOCAL_OWNER and own >= self.waiting_per_user:
            detail = (
                f"{self.waiting_per_user} runs of yours wait for a person, which is the limit: decide, or stop some"
            )
            raise TooManyRuns(detail, retry_after=RETRY_AFTER_SECONDS)

    def check_streams(self, owner: str, own: int) -> None:
        """Raise TooManyStreams if an owner with `own` open streams and sockets has reached the limit."""
        if owner != LOCAL_OWNER and own >= self.streams_per_user:
            detail = f"you have {self.streams_per_user} streams and sockets open, which is the limit: close some"
            raise TooManyStreams(detail, retry_after=RETRY_AFTER_SECONDS)

    def sessions_max(self, owner: str) -> int:
        """Return the session limit of an owner; 0 means unlimited. The store counts the sessions."""
        return 0 if owner == LOCAL_OWNER else self.sessions_per_user
