"""The lossless dialect: a client reads the Records unchanged."""

import msgspec
from hypothesis import given, settings

from limelight.dialects.records import RecordsDialect
from limelight.display_fields import DisplayFields
from limelight.events import AnyEvent, Record
from tests.dialects.transcripts import live
from tests.support.strategies import as_records, events, legal_runs


@settings(max_examples=100)
@given(events())
def test_record_decodes_to_itself(event: AnyEvent) -> None:
    record = Record(7, "run_1", 1_700_000_000_000, DisplayFields().add_to(event))
    (payload,) = RecordsDialect().feed(record)
    assert msgspec.json.decode(payload, type=Record) == record
    assert b"\n" not in payload


@settings(max_examples=30)
@given(legal_runs())
def test_each_record_has_one_frame_with_its_seq_as_cursor(run: list[AnyEvent]) -> None:
    records = as_records(run, first_seq=12)
    frames = live(RecordsDialect, records)
    assert [frame.id for frame in frames] == [str(record.seq) for record in records]
    assert [msgspec.json.decode(frame.data, type=Record) for frame in frames] == records


def test_gap_names_first_and_last_record() -> None:
    assert msgspec.json.decode(RecordsDialect().gap(3, 9)) == {"gap": {"from": 3, "to": 9}}
