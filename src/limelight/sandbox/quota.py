"""Limits the number of sandboxes that exist at the same time: those of a user, and all of the server."""

import threading
from collections import Counter
from collections.abc import Callable

from limelight.errors import AgentFailed
from limelight.models import LOCAL_OWNER


class SandboxQuota:
    """Counts sandboxes by user. All agents of a server share one; any thread may use it.

    A worker counts until it is killed, also between turns; a command counts while it runs. For the user `local` only
    the limit of the server applies.
    """

    def __init__(self, total: int = 128, per_user: int = 32) -> None:
        self._total = total
        self._per_user = per_user
        self._counts: Counter[str] = Counter()
        self._lock = threading.Lock()

    def take(self, user_id: str) -> Callable[[], None]:
        """Count a sandbox of a user. Return the function that ends this; call it once. Raises AgentFailed."""
        with self._lock:
            if self._counts.total() >= self._total:
                raise AgentFailed(
                    f"{self._total} sandboxes exist, which is the limit of this server (limits.sandboxes): "
                    "try again in a moment"
                )
            if user_id != LOCAL_OWNER and self._counts[user_id] >= self._per_user:
                raise AgentFailed(
                    f"you have {self._per_user} sandboxes, which is the limit (limits.sandboxes_per_user): "
                    "wait for commands and runs to end, or delete conversations with code"
                )
            self._counts[user_id] += 1
        return lambda: self._give_back(user_id)

    def _give_back(self, user_id: str) -> None:
        with self._lock:
            self._counts[user_id] -= 1
            if not self._counts[user_id]:
                del self._counts[user_id]
