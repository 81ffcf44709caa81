"""What runs tell whoever counts them. It costs next to nothing, and nothing depends on it; `server/metrics.py` counts."""

from typing import Protocol

from limelight.stores.base import RunState


class Measures(Protocol):
    """Somebody who counts. None of it may raise."""

    def committed(self, records: int, seconds: float) -> None:
        """So many Records are in the log, and it took so long to write them."""
        ...

    def not_committed(self) -> None:
        """The log could not be written; it will be tried again."""
        ...

    def first_event(self, seconds: float) -> None:
        """A run's first event is in the log, so long after somebody asked for the run."""
        ...

    def run_ended(self, agent: str, outcome: RunState, code: str) -> None:
        """`code` says why, if the outcome does not."""
        ...


class NoMeasures:
    """Nobody counts."""

    def committed(self, records: int, seconds: float) -> None:
        pass

    def not_committed(self) -> None:
        pass

    def first_event(self, seconds: float) -> None:
        pass

    def run_ended(self, agent: str, outcome: RunState, code: str) -> None:
        pass


UNCOUNTED = NoMeasures()
