"""The number of messages of a run."""

import json

from hypothesis import given, settings

from limelight.dialects.frame_encoder import FrameEncoder
from limelight.dialects.v2 import V2Dialect
from limelight.events import AnyEvent
from limelight.server.v2.message_history import RunCounter
from tests.support.strategies import as_records, legal_runs


@settings(max_examples=60)
@given(legal_runs())
def test_run_counter_counts_complete_messages(run: list[AnyEvent]) -> None:
    records = as_records(run)
    counter = RunCounter(FrameEncoder(V2Dialect), first_seq=1)
    for start in range(0, len(records), 7):
        counter.feed(records[start : start + 7])
    encoder = FrameEncoder(V2Dialect)
    frames = [frame for record in records for frame in encoder.encode(record)]
    assert counter.count == sum(not json.loads(frame.payload)["metadata"].get("streaming") for frame in frames)
