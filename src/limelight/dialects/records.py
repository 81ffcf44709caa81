"""The lossless dialect: a Record as JSON. What the client, the page and exports read; nothing is dropped or renamed.

The page reads it with deltas joined, because it wants the texts and not each piece; whoever exports wants each Record.
"""

from typing import ClassVar

from limelight.deltas import Delta
from limelight.dialects.base import encode, rooted
from limelight.events import Event, Record


class RecordsDialect:
    """`{"seq", "run_id", "at", "event": {"kind", …}}`, one frame per Record."""

    event_name: ClassVar[str] = ""
    joins: ClassVar[bool] = False
    DROPS: ClassVar[frozenset[type[Event]]] = frozenset()

    def __init__(self, root: str = "") -> None:
        self._root = root

    def feed(self, record: Record) -> list[bytes]:
        return [encode(rooted(record, self._root))]

    def fits(self, event: Delta) -> bool:
        return False

    def gap(self, first: int, last: int) -> bytes:
        return encode({"gap": {"from": first, "to": last}})


class JoinedRecordsDialect(RecordsDialect):
    """The same, but who catches up gets neighbouring deltas as one Record, which has the number of the last."""

    joins: ClassVar[bool] = True

    def fits(self, event: Delta) -> bool:
        return True
