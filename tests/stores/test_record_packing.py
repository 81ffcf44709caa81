"""Packing is lossless and compresses."""

from random import Random

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from limelight.events import AnyEvent, Record, RunFinished, RunStarted, Status, TextDelta, TextFinished
from limelight.stores.record_packing import pack, unpack
from tests.support.strategies import as_records, events, legal_runs, write_run


@settings(max_examples=100)
@given(legal_runs(max_length=60))
def test_unpack_returns_the_packed_legal_run(run: list[AnyEvent]) -> None:
    records = as_records(run)
    assert unpack(pack(records)) == records


@settings(max_examples=100)
@given(
    st.lists(st.tuples(events(), st.integers(0, 2**45)), min_size=1, max_size=8),
    st.integers(1, 2**40),
)
def test_unpack_returns_any_packed_events_and_times(found: list[tuple[AnyEvent, int]], first_seq: int) -> None:
    records = [Record(seq, "run_1", at, event) for seq, (event, at) in enumerate(found, start=first_seq)]
    assert unpack(pack(records)) == records


@given(legal_runs(max_length=60, cut=False), st.data())
@settings(max_examples=30)
def test_run_packed_in_two_parts_is_unpacked_unchanged(run: list[AnyEvent], data: st.DataObject) -> None:
    records = as_records(run, first_seq=1000)
    cut = data.draw(st.integers(1, len(records) - 1))
    assert unpack(pack(records[:cut])) + unpack(pack(records[cut:])) == records


def test_packed_tokens_are_smaller_than_a_fifth_of_their_json() -> None:
    random = Random(7)
    words = ["the ", "light", "house ", "stands", ", ", "on ", "a ", "rock", ".\n", "It ", "is ", "été "]
    tokens: list[AnyEvent] = [TextDelta(message_id="msg-1", text=random.choice(words)) for _ in range(1000)]
    run: list[AnyEvent] = [RunStarted(agent="a"), *tokens, TextFinished(message_id="msg-1"), RunFinished()]
    at, records = 1_700_000_000_000, list[Record]()
    for seq, event in enumerate(run, start=1):
        at += random.randint(0, 40)
        records.append(Record(seq, "run_01k9", at, event))
    assert len(pack(records)) < sum(len(msgspec.json.encode(record)) for record in records) / 5


def test_packed_mixed_run_is_smaller_than_a_third_of_its_json() -> None:
    records = as_records(write_run(Random(3), 300))
    assert len(pack(records)) < len(msgspec.json.encode(records)) / 3


@pytest.mark.parametrize(
    "records",
    [
        [Record(1, "r", 0, Status(text="")), Record(3, "r", 0, Status(text=""))],
        [Record(1, "r", 0, Status(text="")), Record(2, "q", 0, Status(text=""))],
    ],
    ids=["a gap", "two runs"],
)
def test_pack_rejects_records_that_are_not_consecutive(records: list[Record]) -> None:
    with pytest.raises(AssertionError):
        pack(records)
