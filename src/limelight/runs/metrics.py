"""What runs tell whoever counts them. It costs next to nothing, and nothing depends on it.

The log tells of itself here as well, because it is written in two places: by the committer, and by whoever seals a run.
`server/metrics.py` counts.
"""

from collections.abc import Sequence
from time import perf_counter
from typing import Protocol

from limelight.errors import LeaseLost
from limelight.models import Append, RunState
from limelight.stores.base import Store


class Measures(Protocol):
    """Somebody who counts. None of it may raise."""

    def committed(self, records: int, seconds: float) -> None:
        """So many Records are in the log, and it took so long to write them."""
        ...

    def not_committed(self, error: Exception) -> None:
        """The log could not be written; it will be tried again."""
        ...

    def first_event(self, agent: str, seconds: float) -> None:
        """The first thing that an agent did in a run is in the log, so long after somebody asked for the run."""
        ...

    def run_ended(self, agent: str, outcome: RunState, code: str) -> None:
        """A run's end is in the log. `code` says why it failed."""
        ...


class NoMeasures:
    """Nobody counts."""

    def committed(self, records: int, seconds: float) -> None: ...

    def not_committed(self, error: Exception) -> None: ...

    def first_event(self, agent: str, seconds: float) -> None: ...

    def run_ended(self, agent: str, outcome: RunState, code: str) -> None: ...


UNCOUNTED = NoMeasures()


async def commit(store: Store, batch: Sequence[Append], measures: Measures) -> None:
    """Append to the log, and tell how that went. A lease that is lost is no failure of the log."""
    begun = perf_counter()
    try:
        await store.append(batch)
    except LeaseLost:
        raise
    except Exception as error:
        measures.not_committed(error)
        raise
    measures.committed(sum(len(append.records) for append in batch), perf_counter() - begun)
