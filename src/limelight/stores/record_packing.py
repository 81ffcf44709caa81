"""A compressed encoding for consecutive records of one run, in which neighbouring deltas share their fields.

Pure and lossless. Stores that write records as blobs use it.
"""

import zlib
from collections.abc import Sequence
from typing import Any

import msgspec

from limelight.deltas import DELTA_TYPES, Delta, delta_key
from limelight.events import AnyEvent, Record
from limelight.models import refers_to


class Single(msgspec.Struct, array_like=True, tag="e"):
    """One record in a pack. `at` is the difference from the time of the previous record."""

    at: int
    event: AnyEvent


class Deltas(msgspec.Struct, array_like=True, tag="d"):
    """Consecutive deltas in a pack that differ only in text and time: one event without text, all times and texts."""

    head: Delta
    ats: list[int]
    texts: list[str]


class Pack(msgspec.Struct, array_like=True):
    """The packed form of consecutive records of one run, before compression. `first_seq` numbers the first one."""

    run_id: str
    first_seq: int
    parts: list[Single | Deltas]


_encoder = msgspec.json.Encoder()
_decoder = msgspec.json.Decoder(Pack)


def pack(records: Sequence[Record]) -> bytes:
    """Return consecutive records of one run as compressed bytes, which `unpack` decodes."""
    first, last = records[0], records[-1]
    assert (last.seq - first.seq, last.run_id) == (len(records) - 1, first.run_id)
    parts: list[Single | Deltas] = []
    previous_at = 0
    group: Deltas | None = None
    key: Any = None
    for record in records:
        event, at = record.event, record.at - previous_at
        previous_at = record.at
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
    """Return the records that `pack` has encoded as `body`."""
    return _records(_decoder.decode(zlib.decompress(body)))


def unpack_naming(body: bytes, id_: str) -> list[Record]:
    """Return those of the records in a packed `body` that have this `call_id` or `approval_id`.

    A body that does not contain the id is not parsed.
    """
    encoded = zlib.decompress(body)
    if _encoder.encode(id_) not in encoded:
        return []
    return [record for record in _records(_decoder.decode(encoded)) if refers_to(record, id_)]


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
