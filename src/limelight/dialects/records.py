"""The lossless dialect: each Record as JSON. The client library, the page and exports read it."""

from typing import ClassVar

from msgspec.structs import replace

from limelight.deltas import Delta
from limelight.dialects.base import EventReader, encode
from limelight.events import Event, Record


class RecordsDialect:
    """Sends one frame per Record: `{"seq", "run_id", "at", "event": {"kind", …}}`."""

    event_name: ClassVar[str] = ""
    joins: ClassVar[bool] = False
    DROPS: ClassVar[frozenset[type[Event]]] = frozenset()

    def __init__(self, root: str = "") -> None:
        self._reader = EventReader(root)

    def feed(self, record: Record) -> list[bytes]:
        event = self._reader.read(record.event)
        return [encode(record if event is record.event else replace(record, event=event))]

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
