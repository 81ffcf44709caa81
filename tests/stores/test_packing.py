"""The compact form: what comes out equals what went in, and it is much smaller."""

from random import Random

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from limelight.events import AnyEvent, Record, RunFinished, RunStarted, Status, TextDelta, TextFinished
from limelight.stores.packing import pack, unpack
from tests.support.strategies import as_records, events, legal_runs, write_run


@settings(max_examples=100)
@given(legal_runs(max_length=60))
def test_a_legal_run_comes_back_unchanged(run: list[AnyEvent]) -> None:
    records = as_records(run)
    assert unpack(pack(records)) == records


@settings(max_examples=100)
@given(
    st.lists(st.tuples(events(), st.integers(0, 2**45)), min_size=1, max_size=8),
    st.integers(1, 2**40),
)
def test_any_events_at_any_times_come_back_unchanged(found: list[tuple[AnyEvent, int]], first_seq: int) -> None:
    records = [Record(seq, "run_1", at, event) for seq, (event, at) in enumerate(found, start=first_seq)]
    assert unpack(pack(records)) == records


@given(legal_runs(max_length=60, cut=False), st.data())
@settings(max_examples=30)
def test_a_run_may_be_packed_in_stretches(run: list[AnyEvent], data: st.DataObject) -> None:
    records = as_records(run, first_seq=1000)
    cut = data.draw(st.integers(1, len(records) - 1))
    assert unpack(pack(records[:cut])) + unpack(pack(records[cut:])) == records


def test_a_thousand_tokens_take_less_than_a_fifth_of_their_json() -> None:
    random = Random(7)
    words = ["the ", "light", "house ", "stands", ", ", "on ", "a ", "rock", ".\n", "It ", "is ", "été "]
    tokens: list[AnyEvent] = [TextDelta(message_id="msg-1", text=random.choice(words)) for _ in range(1000)]
    run: list[AnyEvent] = [RunStarted(agent="a"), *tokens, TextFinished(message_id="msg-1"), RunFinished()]
    at, records = 1_700_000_000_000, list[Record]()
    for seq, event in enumerate(run, start=1):
        at += random.randint(0, 40)
        records.append(Record(seq, "run_01k9", at, event))
    assert len(pack(records)) < sum(len(msgspec.json.encode(record)) for record in records) / 5


def test_a_mixed_run_becomes_smaller_too() -> None:
    records = as_records(write_run(Random(3), 300))
    assert len(pack(records)) < len(msgspec.json.encode(records)) / 3


@pytest.mark.parametrize(
    "records",
    [
        [Record(1, "r", 0, Status(text="")), Record(3, "r", 0, Status(text=""))],
        [Record(1, "r", 0, Status(text="")), Record(2, "q", 0, Status(text=""))],
    ],
    ids=["a hole", "two runs"],
)
def test_only_neighbours_of_one_run_are_packed(records: list[Record]) -> None:
    with pytest.raises(AssertionError):
        pack(records)
