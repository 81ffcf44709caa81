"""Recognizes signals: requests that stop a run or decide on an approval, by their path or by their first bytes.

The server never refuses a signal for its rate. A signal on a new connection does not wait behind other connections of
its address either: the first bytes of a waiting connection show whether it is one.
"""

import re
from time import monotonic

from limelight.runs.queue import SessionQueues
from limelight.runs.stop_and_approvals import Control
from limelight.server.rate_limit import SIGNAL_BURST, SIGNALS_PER_SECOND
from limelight.server.token_bucket import TokenBuckets

SIGNAL_PATH = re.compile(r"/runs/[^/]+/(cancel|approvals/[^/]+)")
"""The paths of signals, without the root path. Their method is POST."""
REQUEST_LINE = re.compile(rb"POST (?:/[^ ?]*)?/runs/([^/ ?]+)/(?:cancel|approvals/([^/ ?]+))[ ?]")
"""The beginning of a request that is a signal. A proxy may have left the root path in it."""


class SignalRecognizer:
    """Recognizes connections that begin with a signal for a live or queued run of this process.

    The ids of runs and approvals are random, so only clients that know them can send such a request: others gain
    nothing from one that looks like it. A run has a budget of such connections, and so has each of its open approvals.
    """

    def __init__(self, control: Control, queues: SessionQueues) -> None:
        self._control = control
        self._queues = queues
        self._budgets = TokenBuckets(SIGNAL_BURST, SIGNALS_PER_SECOND, monotonic)

    def __call__(self, first_bytes: bytes) -> bool:
        """Whether the first bytes of a connection are such a signal. Counts the connection if they are.

        False if the budget is used up.
        """
        found = REQUEST_LINE.match(first_bytes)
        if found is None:
            return False
        run_id, approval_id = (text.decode("latin-1") for text in found.groups(b""))
        return self._is_expected(run_id, approval_id) and self._budgets.spend(f"{run_id}/{approval_id}")

    def _is_expected(self, run_id: str, approval_id: str) -> bool:
        live = self._control.live_run(run_id)
        if approval_id:
            return live is not None and approval_id in live.execution.grammar.approvals
        return live is not None or self._queues.find(run_id) is not None
