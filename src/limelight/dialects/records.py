"""The lossless dialects: each Record as JSON, for the client library, the page and exports."""

from typing import ClassVar

from msgspec.structs import replace

from limelight.deltas import Delta
from limelight.dialects.base import EventReader, encode
from limelight.events import Event, Record


class RecordsDialect:
    """The dialect `records`, with one frame per Record: `{"seq", "run_id", "at", "event": {"kind", …}}`."""

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
    """RecordsDialect with joined deltas: a viewer that catches up gets neighbouring deltas as one Record.

    The page uses this dialect, because it does not need single deltas. Exports need each Record.
    """

    joins: ClassVar[bool] = True

    def fits(self, event: Delta) -> bool:
        return True
