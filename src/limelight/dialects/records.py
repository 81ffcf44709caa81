"""The lossless dialect: each Record as JSON. The client library, the page and exports read it."""

from typing import ClassVar

from limelight.deltas import Delta
from limelight.dialects.base import encode, with_root
from limelight.events import Event, Record


class RecordsDialect:
    """Sends one frame per Record: `{"seq", "run_id", "at", "event": {"kind", …}}`."""

    event_name: ClassVar[str] = ""
    joins: ClassVar[bool] = False
    DROPS: ClassVar[frozenset[type[Event]]] = frozenset()

    def __init__(self, root: str = "") -> None:
        self._root = root

    def feed(self, record: Record) -> list[bytes]:
        return [encode(with_root(record, self._root))]

    def fits(self, event: Delta) -> bool:
        return False

    def gap(self, first: int, last: int) -> bytes:
        return encode({"gap": {"from": first, "to": last}})


class JoinedRecordsDialect(RecordsDialect):
    """Like RecordsDialect, but a viewer that catches up gets neighbouring deltas joined to one Record.

    The page uses it, because it needs texts and not each piece of them. Exports need each Record.
    """

    joins: ClassVar[bool] = True

    def fits(self, event: Delta) -> bool:
        return True
