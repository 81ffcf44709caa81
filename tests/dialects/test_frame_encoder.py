"""Properties of every installed dialect: golden transcripts, exact resume, declared drops, frames and cursors."""

import os
from pathlib import Path
from random import Random
from typing import ClassVar

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from limelight.deltas import Delta
from limelight.dialects.base import AgentTree, text_of
from limelight.dialects.frame_encoder import FrameEncoder
from limelight.errors import BadCursor
from limelight.events import (
    EVENT_TYPES,
    AgentStarted,
    AnyEvent,
    Event,
    JsonValue,
    Plan,
    PlanDelta,
    Record,
    RunFailed,
    RunFinished,
    RunStarted,
    Status,
    TextDelta,
    TextFinished,
    ToolFinished,
    ToolOutputDelta,
    ToolStarted,
    kind_of,
)
from limelight.grammar import Grammar
from limelight.models import Cursor
from limelight.server.sse import sse_framing
from tests.dialects.transcripts import DELTAS, DIALECTS, SCRIPTS, joined, live, pieces, records_of, resumed
from tests.support.strategies import as_records, legal_runs, write_run

GOLDEN = Path(__file__).parent / "golden"
WRITE = os.environ.get("LIMELIGHT_GOLDEN") == "write"
CORPUS: list[list[AnyEvent]] = [*SCRIPTS.values(), *(write_run(Random(seed), 80) for seed in range(12))]
"""Runs that contain every kind of event."""

each_dialect = pytest.mark.parametrize("dialect", DIALECTS)
each_script = pytest.mark.parametrize("script", SCRIPTS)


def compare(path: Path, found: bytes) -> None:
    if WRITE:
        path.write_bytes(found)
    assert path.exists(), f"{path.name} is missing: run `make golden` and look at what it writes"
    assert found == path.read_bytes(), f"{path.name} differs: if that is meant, run `make golden`"


# Golden transcripts


@each_script
def test_scripts_are_legal_runs(script: str) -> None:
    grammar = Grammar()
    for event in SCRIPTS[script]:
        grammar.check(event)
    assert grammar.terminal is not None


@each_script
def test_records_of_a_script_equal_the_golden_file(script: str) -> None:
    found = b"".join(msgspec.json.encode(record) + b"\n" for record in records_of(script))
    compare(GOLDEN / f"{script}.jsonl", found)


@each_dialect
@each_script
def test_frames_of_a_script_equal_the_golden_file(script: str, dialect: str) -> None:
    """The input is read from the golden Records, so that both golden files belong together."""
    lines = (GOLDEN / f"{script}.jsonl").read_bytes().splitlines()
    records = [msgspec.json.decode(line, type=Record) for line in lines]
    encoder = FrameEncoder(DIALECTS[dialect])
    frames = [frame for record in records for frame in encoder.encode(record)]
    compare(GOLDEN / f"{script}.{dialect}.sse", sse_framing(DIALECTS[dialect]().event_name)(frames))


def test_every_golden_file_belongs_to_a_script() -> None:
    expected = {f"{script}.jsonl" for script in SCRIPTS}
    expected |= {f"{script}.{dialect}.sse" for script in SCRIPTS for dialect in DIALECTS}
    assert {path.name for path in GOLDEN.iterdir()} == expected


# Every kind of event is sent or declared as dropped


def emitted_kinds(dialect: str) -> dict[type[Event], int]:
    """Count the frames of each kind of event over the corpus."""
    counts: dict[type[Event], int] = dict.fromkeys(EVENT_TYPES, 0)
    for run in CORPUS:
        encoder = FrameEncoder(DIALECTS[dialect])
        for record in as_records(run):
            counts[type(record.event)] += len(encoder.feed(record))
    return counts


def test_corpus_has_every_kind_of_event() -> None:
    assert {type(event) for run in CORPUS for event in run} == set(EVENT_TYPES)


@each_dialect
def test_each_kind_is_either_sent_or_declared_in_drops(dialect: str) -> None:
    silent = {kind for kind, count in emitted_kinds(dialect).items() if not count}
    declared: frozenset[type[Event]] = DIALECTS[dialect]().DROPS
    assert {kind_of(kind) for kind in silent} == {kind_of(kind) for kind in declared}


# Resume


def assert_every_cut_is_exact(dialect: str, run: list[AnyEvent]) -> list[str]:
    """Assert that frames up to a cut and frames after it are the uninterrupted ones. Return all cut points."""
    make_dialect, records = DIALECTS[dialect], as_records(run)
    frames = live(make_dialect, records)
    uninterrupted = pieces(dialect, frames)
    expected = joined(uninterrupted)
    for position, cut in enumerate(["0", *(frame.id for frame in frames)]):
        after = pieces(dialect, resumed(make_dialect, records, cut))
        assert joined(uninterrupted[:position] + after) == expected, f"cut at {cut}"
    places = {frame.id: position for position, frame in enumerate(frames, start=1)}
    replayed = pieces(dialect, resumed(make_dialect, records, "0"))
    for position, piece in enumerate(replayed, start=1):  # a viewer that catches up can be cut off too
        assert piece.id in places, f"a live viewer has not seen {piece.id}"
        if "." in piece.id:
            assert joined(replayed[:position]) == joined(uninterrupted[: places[piece.id]]), f"cut at {piece.id}"
    return [frame.id for frame in frames]


@each_dialect
def test_resume_is_exact_in_texts_of_several_pages(dialect: str) -> None:
    pieces_of_text = [f"{number:04} " * 200 for number in range(130)]
    said = [TextDelta(message_id="m", text=text) for text in pieces_of_text]
    printed = [ToolOutputDelta(call_id="t", text=text) for text in pieces_of_text]
    call = [ToolStarted(call_id="t", name="cat", args={}), *printed, ToolFinished(call_id="t", result="")]
    text = [*said, TextFinished(message_id="m")]
    preview = Plan(text="".join(pieces_of_text)[:10_000], truncated=True)
    plan = [*(PlanDelta(text=text) for text in pieces_of_text), preview]
    assert_every_cut_is_exact(dialect, [RunStarted(agent="a", input="x"), *plan, *call, *text, RunFinished()])


def test_every_dialect_has_a_delta_parser() -> None:
    assert set(DELTAS) == set(DIALECTS)


@each_dialect
def test_resume_is_exact_at_every_frame_of_a_long_run(dialect: str) -> None:
    """The run fails, because then its last Record has several frames in some dialects."""
    runs = (write_run(Random(seed), 280) for seed in range(100))
    run = next(run for run in runs if isinstance(run[-1], RunFailed))
    assert len(run) >= 300
    cuts = assert_every_cut_is_exact(dialect, run)
    assert len(cuts) > 90  # of the dialect that drops most
    assert len(set(cuts)) == len(cuts), "no two frames have the same id"


@each_dialect
@each_script
def test_resume_is_exact_at_every_frame_of_a_script(dialect: str, script: str) -> None:
    assert assert_every_cut_is_exact(dialect, SCRIPTS[script])


@each_dialect
@settings(max_examples=30)
@given(run=legal_runs(max_length=40))
def test_resume_is_exact_at_every_frame_of_any_run(dialect: str, run: list[AnyEvent]) -> None:
    assert assert_every_cut_is_exact(dialect, run)


def test_cut_points_include_positions_inside_a_record() -> None:
    ids = [frame.id for frame in live(DIALECTS["typed"], records_of("failed"))]
    assert ids[-3:] == ["4.1", "4.2", "4"]


# The encoder


class WordDialect:
    """Sends a frame for each word of a status, with the number of Records that it was fed."""

    event_name: ClassVar[str] = "message"
    joins: ClassVar[bool] = True
    DROPS: ClassVar[frozenset[type[Event]]] = frozenset()

    def __init__(self, root: str = "") -> None:
        self._fed = 0

    def feed(self, record: Record) -> list[bytes]:
        self._fed += 1
        text = record.event.text if isinstance(record.event, Status | TextDelta) else ""
        return [b"%d %b" % (self._fed, word.encode()) for word in text.split()]

    def fits(self, event: Delta) -> bool:
        return True

    def gap(self, first: int, last: int) -> bytes:
        return b"gap %d %d" % (first, last)


def record(seq: int, text: str) -> Record:
    return Record(seq, "r", 0, Status(text=text))


def test_last_frame_of_a_record_has_its_seq_and_earlier_ones_inner_cursors() -> None:
    frames = FrameEncoder(WordDialect).encode(record(57, "one two three"))
    assert frames == [((57, 1), b"1 one"), ((57, 2), b"1 two"), ((57, 0), b"1 three")]


def test_inner_cursors_of_a_joined_record_have_the_first_seq() -> None:
    frames = FrameEncoder(WordDialect).encode(record(57, "one two"), first_seq=50)
    assert [frame.cursor for frame in frames] == [(50, 1), (57, 0)]


@pytest.mark.parametrize(
    ("skip", "ids"), [(0, [b"7.1", b"7.2", b"7"]), (1, [b"7.2", b"7"]), (2, [b"7"]), (3, []), (9, [])]
)
def test_skipped_frames_do_not_change_the_cursors_of_others(skip: int, ids: list[bytes]) -> None:
    frames = FrameEncoder(WordDialect).encode(record(7, "a b c"), skip=skip)
    assert [frame.cursor.encode() for frame in frames] == ids


def test_single_frame_can_be_skipped() -> None:
    assert FrameEncoder(WordDialect).encode(record(7, "a"), skip=1) == []


def test_record_without_payloads_has_no_frames() -> None:
    assert FrameEncoder(WordDialect).encode(record(7, "")) == []


def test_each_run_started_creates_a_new_dialect() -> None:
    encoder = FrameEncoder(WordDialect)
    encoder.feed(record(1, ""))
    assert encoder.feed(record(2, "x")) == [b"2 x"]
    encoder.feed(Record(3, "r2", 0, RunStarted(agent="a")))
    assert encoder.feed(record(4, "x")) == [b"2 x"], "the run_started is the first Record of the new dialect"


def test_gap_frame_has_the_cursor_of_the_last_record() -> None:
    assert FrameEncoder(WordDialect).gap(3, 9) == ((9, 0), b"gap 3 9")


# Cursors, depth, text


@pytest.mark.parametrize(
    ("text", "cursor"), [("0", (0, 0)), ("57", (57, 0)), ("57.1", (57, 1)), ("57.0", (57, 0)), ("007.02", (7, 2))]
)
def test_cursor_parses_seq_and_frame(text: str, cursor: tuple[int, int]) -> None:
    assert Cursor.parse(text) == cursor


@pytest.mark.parametrize("text", ["", "a", "-1", "1.", ".1", "1.2.3", "1.x", " 1", "1e3", "١", "²", "9" * 33])
def test_invalid_cursor_is_refused(text: str) -> None:
    with pytest.raises(BadCursor, match=r"a cursor is a number like 57 or 57\.1"):
        Cursor.parse(text)


@given(st.integers(0, 10**15), st.integers(0, 99))
def test_cursor_parses_what_it_encodes(seq: int, k: int) -> None:
    assert Cursor.parse(Cursor(seq, k).encode().decode()) == Cursor(seq, k)


def test_depth_is_derived_from_the_agent_tree() -> None:
    tree = AgentTree()
    assert tree.add(AgentStarted(agent_id="a", name="")) == 1
    assert tree.add(AgentStarted(agent_id="b", name="", parent_id="a")) == 2
    assert tree.add(AgentStarted(agent_id="c", name="")) == 1
    assert [tree.depth(agent_id) for agent_id in ("", "a", "b", "c", "unknown")] == [0, 1, 2, 1, 0]


@pytest.mark.parametrize(
    ("value", "text"), [("as it is", "as it is"), ("", ""), (None, "null"), ({"a": [1]}, '{"a":[1]}'), (True, "true")]
)
def test_text_of_returns_strings_unchanged_and_others_as_json(value: JsonValue, text: str) -> None:
    assert text_of(value) == text
