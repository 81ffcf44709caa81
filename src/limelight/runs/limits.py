"""Limits of users and runs: quotas, token buckets, sizes and time limits. Pure; clocks are passed in."""

from collections import OrderedDict
from collections.abc import Callable

import msgspec

from limelight.errors import TooManyRuns, TooManyStreams
from limelight.models import LOCAL_OWNER

RETRY_AFTER_SECONDS = 5
"""The `retry_after` of refusals that are temporary."""


class RunLimits(msgspec.Struct, frozen=True, kw_only=True):
    """Time limits of a run, and size limits of its results and its session."""

    run_seconds: float = 3600
    silence_seconds: float = 300
    approval_seconds: float = 600
    result_max: int = 50 * 1024 * 1024
    session_max: int = 1024**3


class Quota(msgspec.Struct, frozen=True, kw_only=True):
    """Limits for the runs, sessions and streams that a user may have at once, and for all runs of the server.

    The user `local` (requests without a key, or a backend with the key of the settings) has only the limit of the
    server.
    """

    runs: int = 500
    runs_per_user: int = 20
    waiting_per_user: int = 50
    sessions_per_user: int = 10_000
    streams_per_user: int = 100

    def check_runs(self, owner: str, own: int, all_: int) -> None:
        """Raise TooManyRuns if an owner with `own` runs, or a server with `all_` runs, has reached the limit."""
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


class TokenBucket:
    """A rate limit that allows `burst` actions at once, and `per_second` actions in the long run. It starts full."""

    def __init__(self, burst: int, per_second: float, clock: Callable[[], float]) -> None:
        self._burst = burst
        self._per_second = per_second
        self._clock = clock
        self._tokens = float(burst)
        self._updated_at = clock()

    def spend(self) -> bool:
        """Take one token. Return False if there is none."""
        now = self._clock()
        self._tokens = min(self._burst, self._tokens + (now - self._updated_at) * self._per_second)
        self._updated_at = now
        if self._tokens < 1:
            return False
        self._tokens -= 1
        return True


class TokenBuckets:
    """A token bucket for each key. The least recently used buckets are dropped, and start full when used again."""

    def __init__(self, burst: int, per_second: float, clock: Callable[[], float], max_keys: int = 4096) -> None:
        self._make = lambda: TokenBucket(burst, per_second, clock)
        self._max_keys = max_keys
        self._buckets: OrderedDict[str, TokenBucket] = OrderedDict()

    def spend(self, key: str) -> bool:
        """Take one token from the bucket of a key. Return False if there is none."""
        bucket = self._buckets.pop(key, None) or self._make()
        self._buckets[key] = bucket
        if len(self._buckets) > self._max_keys:
            self._buckets.popitem(last=False)
        return bucket.spend()
