"""The lossless dialect: a Record as JSON. What the client, the page and exports read; nothing is dropped or renamed."""

from typing import ClassVar

from limelight.deltas import Delta
from limelight.dialects.base import encode
from limelight.events import Event, Record


class RecordsDialect:
    """`{"seq", "run_id", "at", "event": {"kind", …}}`, one frame per Record."""

    event_name: ClassVar[str] = ""
    joins: ClassVar[bool] = False
    DROPS: ClassVar[frozenset[type[Event]]] = frozenset()

    def feed(self, record: Record) -> list[bytes]:
        return [encode(record)]

    def fits(self, event: Delta) -> bool:
        return False

    def gap(self, first: int, last: int) -> bytes:
        return encode({"gap": {"from": first, "to": last}})
