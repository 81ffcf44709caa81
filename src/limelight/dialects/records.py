"""The wire formats that lose nothing: each Record as JSON, for the client library, the page and exports."""

from typing import ClassVar

from msgspec.structs import replace

from limelight.dialects.base import Dialect, EventReader, encode
from limelight.events import Record


class RecordsDialect(Dialect):
    """The dialect `records`: one frame per Record, `{"seq", "run_id", "at", "event": {"kind", …}}`."""

    joins: ClassVar[bool] = False

    def __init__(self, root: str = "") -> None:
        self._reader = EventReader(root)

    def feed(self, record: Record) -> list[bytes]:
        event = self._reader.read(record.event)
        return [encode(record if event is record.event else replace(record, event=event))]

    def gap(self, first: int, last: int) -> bytes:
        return encode({"gap": {"from": first, "to": last}})


class JoinedRecordsDialect(RecordsDialect):
    """The dialect `records` with joined deltas: a viewer that catches up gets neighbouring deltas as one Record.

    The page uses this dialect, because it does not need single deltas. Exports need each Record.
    """

    joins: ClassVar[bool] = True
