"""An execution without a server or a committer: tests take what it has appended."""

from collections.abc import Mapping
from typing import Any, cast

from limelight.models import Run, SessionRef
from limelight.redaction.rules import DEFAULT_REDACTOR, Redactor
from limelight.runs.committer import Committer
from limelight.runs.engine import Engine, Execution
from limelight.runs.limits import RunLimits
from limelight.runs.metrics import NO_METRICS, RunMetrics
from limelight.stores.memory import MemoryStore


class IdleCommitter:
    """A committer that commits nothing: the test does it with `take` and `committed`."""

    failing = False

    def schedule(self, run: Any, *, can_wait: bool = False, must_not_wait: bool = False) -> None:
        """Do nothing."""


def execution(
    redactor: Redactor = DEFAULT_REDACTOR,
    limits: RunLimits | None = None,
    *,
    metrics: RunMetrics = NO_METRICS,
    status: Mapping[str, str] = {},
    streams: bool = True,
) -> Execution:
    ref = SessionRef("ann", "s")
    run = Run(
        run_id="run_1",
        ref=ref,
        agent="a",
        turn=1,
        state="running",
        started_at=0,
        ended_at=None,
        first_seq=1,
        last_seq=0,
    )
    engine = Engine(MemoryStore(), cast("Committer", IdleCommitter()), limits or RunLimits(), redactor, metrics)
    return Execution(engine, run, status=status, streams=streams)
