"""Limits of users and runs: quotas, sizes and time limits. Pure."""

from collections.abc import Mapping

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


class MemoryLimits(msgspec.Struct, frozen=True, kw_only=True):
    """Limits of the memory that conversations hold in this process between turns, in bytes.

    For the user `local`, only the limit of all users applies.
    """

    bytes_per_user: int = 64 * 1024 * 1024
    bytes_in_all: int = 256 * 1024 * 1024

    def exceeded_by(self, held: Mapping[str, int]) -> str | None:
        """Return the user who must release memory, by the bytes that each user holds; None if no limit is exceeded.

        If all users together exceed their limit, it is the user who holds the most.
        """
        largest = sorted(held, key=lambda owner: held[owner], reverse=True)
        for owner in largest:
            if owner != LOCAL_OWNER and held[owner] > self.bytes_per_user:
                return owner
        return largest[0] if sum(held.values()) > self.bytes_in_all else None

    def exceeded_alone(self, owner: str, held: int) -> bool:
        """Whether one conversation of a user, which holds these bytes, exceeds a limit."""
        return held > (self.bytes_in_all if owner == LOCAL_OWNER else min(self.bytes_per_user, self.bytes_in_all))


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
