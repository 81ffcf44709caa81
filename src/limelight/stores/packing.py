"""The compact form of a stretch of one run's Records: neighbouring deltas share one head, and all of it is deflated.

Pure: bytes in, Records out, and what comes out equals what went in. Stores that keep blobs use it; nobody else sees it.
"""

import zlib
from collections.abc import Sequence
from typing import Any

import msgspec

from limelight.deltas import DELTA_TYPES, Delta, delta_key
from limelight.events import AnyEvent, Record


class Single(msgspec.Struct, array_like=True, tag="e"):
    """One Record as it is; `at` counts from the Record before it, as in Deltas."""

    at: int
    event: AnyEvent


class Deltas(msgspec.Struct, array_like=True, tag="d"):
    """Several deltas that differ in text and time only: the first one without text, then the texts and times."""

    head: Delta
    ats: list[int]
    texts: list[str]


class Pack(msgspec.Struct, array_like=True):
    """A stretch: Records number `first_seq`, `first_seq` + 1, … of one run."""

    run_id: str
    first_seq: int
    parts: list[Single | Deltas]


_encoder = msgspec.json.Encoder()
_decoder = msgspec.json.Decoder(Pack)


def pack(records: Sequence[Record]) -> bytes:
    """Make the compact form. The Records must be neighbours of one run."""
    first, last = records[0], records[-1]
    assert (last.seq - first.seq, last.run_id) == (len(records) - 1, first.run_id)
    parts: list[Single | Deltas] = []
    before = 0
    group: Deltas | None = None
    key: Any = None
    for record in records:
        event, at = record.event, record.at - before
        before = record.at
        if isinstance(event, DELTA_TYPES):
            event_key = delta_key(event)
            if group is None or event_key != key:
                group, key = Deltas(msgspec.structs.replace(event, text=""), [], []), event_key
                parts.append(group)
            group.ats.append(at)
            group.texts.append(event.text)
        else:
            group = None
            parts.append(Single(at, event))
    return zlib.compress(_encoder.encode(Pack(records[0].run_id, records[0].seq, parts)), 6)


def unpack(body: bytes) -> list[Record]:
    """The Records that were packed."""
    return _records(_decoder.decode(zlib.decompress(body)))


def unpack_naming(body: bytes, id_: str) -> list[Record]:
    """Those of them that name this call or approval. What does not have the id in it is not even taken apart."""
    written = zlib.decompress(body)
    if _encoder.encode(id_) not in written:
        return []
    return [record for record in _records(_decoder.decode(written)) if names(record, id_)]


def names(record: Record, id_: str) -> bool:
    """Whether it is about this call or approval. Many are about none, which is no name."""
    event = record.event
    return bool(id_) and id_ in (getattr(event, "call_id", None), getattr(event, "approval_id", None))


def _records(packed: Pack) -> list[Record]:
    records: list[Record] = []
    seq, at, run_id = packed.first_seq, 0, packed.run_id
    for part in packed.parts:
        if isinstance(part, Single):
            at += part.at
            records.append(Record(seq, run_id, at, part.event))
            seq += 1
            continue
        for step, text in zip(part.ats, part.texts, strict=True):
            at += step
            records.append(Record(seq, run_id, at, msgspec.structs.replace(part.head, text=text)))
            seq += 1
    return records
