"""Joining of neighbouring deltas: fewer Records with the same texts."""

from itertools import pairwise

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from limelight.deltas import MAX_DELTA, Delta, Joined, delta_key, join, json_size
from limelight.events import (
    AnyEvent,
    ReasoningDelta,
    Record,
    Status,
    TextDelta,
    ToolArgsDelta,
    ToolOutputDelta,
)
from tests.support.strategies import as_records, legal_runs, text_sums


def text(content: str, message_id: str = "m", agent_id: str = "") -> TextDelta:
    return TextDelta(message_id=message_id, text=content, agent_id=agent_id)


def joined(*events: AnyEvent) -> list[Joined]:
    return list(join(as_records(events)))


def texts_of(found: list[Joined]) -> list[str]:
    return [item.record.event.text for item in found if isinstance(item.record.event, Delta)]


@settings(max_examples=100)
@given(legal_runs(max_length=60))
def test_join_keeps_texts_order_and_seqs(run: list[AnyEvent]) -> None:
    records = as_records(run)
    found = list(join(records))
    assert text_sums(item.record for item in found) == text_sums(records)
    covered = [seq for item in found for seq in range(item.first_seq, item.record.seq + 1)]
    assert covered == [record.seq for record in records], "each Record is in exactly one, in order"
    by_seq = {record.seq: record for record in records}
    for item in found:
        last = by_seq[item.record.seq]
        assert (item.record.at, item.record.run_id) == (last.at, last.run_id)
        if item.first_seq == item.record.seq:
            assert item.record is last, "an item without a neighbour is passed on unchanged"


@settings(max_examples=100)
@given(legal_runs(max_length=60))
def test_join_leaves_no_neighbours_of_one_text_below_the_limit(run: list[AnyEvent]) -> None:
    found = [item.record.event for item in join(as_records(run))]
    for before, after in pairwise(found):
        if isinstance(before, Delta) and isinstance(after, Delta):
            assert delta_key(before) != delta_key(after)


pieces = st.lists(st.sampled_from(["x", "\x00" * 900, "é" * 3000, "a" * 16_000, '"', ""]), max_size=40)


@settings(max_examples=60)
@given(pieces)
def test_join_stays_below_the_limit_and_is_idempotent(texts: list[str]) -> None:
    once = joined(*map(text, texts))
    assert "".join(texts_of(once)) == "".join(texts)
    assert all(json_size(content) <= MAX_DELTA for content in texts_of(once))
    again = list(join(item.record for item in once))
    assert [item.record for item in again] == [item.record for item in once]


def test_join_fills_deltas_up_to_the_limit() -> None:
    found = joined(*[text("x")] * (MAX_DELTA + 5))
    assert [json_size(content) for content in texts_of(found)] == [MAX_DELTA, 7 + 2]
    assert [(item.first_seq, item.record.seq) for item in found] == [(1, MAX_DELTA - 2), (MAX_DELTA - 1, MAX_DELTA + 5)]


@pytest.mark.parametrize(
    "other",
    [
        text("b", message_id="n"),
        text("b", agent_id="a"),
        ReasoningDelta(message_id="m", text="b"),
        ToolArgsDelta(call_id="m", text="b"),
        ToolOutputDelta(call_id="m", text="b"),
        Status(text="b"),
    ],
    ids=lambda event: type(event).__name__,
)
def test_join_joins_only_pieces_of_one_text(other: AnyEvent) -> None:
    events = [text("a"), other, text("c")]
    assert [item.record.event for item in joined(*events)] == events


def test_stdout_and_stderr_are_not_joined() -> None:
    out, err = ToolOutputDelta(call_id="c", text="o"), ToolOutputDelta(call_id="c", text="e", stream="stderr")
    found = [item.record.event for item in joined(out, out, err, err)]
    assert found == [msgspec.structs.replace(out, text="oo"), msgspec.structs.replace(err, text="ee")]


def test_messages_of_two_runs_are_not_joined() -> None:
    records = [Record(1, "run_1", 0, text("a")), Record(2, "run_2", 0, text("b"))]
    assert [item.record for item in join(records)] == records


def test_joined_record_is_the_last_one_with_all_texts() -> None:
    records = [Record(seq, "r", seq * 10, text(c)) for seq, c in [(4, "a"), (5, "b"), (6, "c")]]
    assert list(join(records)) == [Joined(records, Record(6, "r", 60, text("abc")))]


def test_join_of_nothing_is_empty() -> None:
    assert list(join([])) == []


@pytest.mark.parametrize(("content", "size"), [("", 2), ("a", 3), ("é", 4), ("\x00", 8), ("\n", 4), ("😀", 6)])
def test_json_size_counts_bytes_with_quotes_and_escapes(content: str, size: int) -> None:
    assert json_size(content) == size
