"""What is said faster than the log is written becomes fewer Records, and loses nothing."""

from hypothesis import given
from hypothesis import strategies as st

from limelight.deltas import MAX_DELTA, json_size
from limelight.events import AnyEvent, ReasoningDelta, Record, Status, TextDelta
from limelight.runs.write_buffer import MAX_JOINED, WriteBuffer


def said(*texts: str, message_id: str = "m") -> list[TextDelta]:
    return [TextDelta(message_id=message_id, text=text) for text in texts]


def filled(*events: AnyEvent) -> WriteBuffer:
    buffer = WriteBuffer("run_1", 7, 0)
    for event in events:
        put(buffer, event)
    return buffer


def put(buffer: WriteBuffer, event: AnyEvent) -> None:
    if isinstance(event, TextDelta | ReasoningDelta):
        buffer.append_delta(event)
    else:
        buffer.append([event])


def texts(records: list[Record]) -> list[str]:
    return [getattr(record.event, "text", "") for record in records]


def test_a_text_grows_until_it_is_taken() -> None:
    buffer = filled(*said("a", "b", "c"))
    assert texts(buffer.take()) == ["abc"]
    buffer.append_delta(said("d")[0])
    [record] = buffer.take()
    assert (record.seq, record.run_id, record.event) == (9, "run_1", said("d")[0])


def test_nothing_grows_past_what_came_after_it() -> None:
    buffer = filled(*said("a"), Status(text="s"), *said("b"), *said("x", message_id="n"), *said("c"))
    assert texts(buffer.take()) == ["a", "s", "b", "x", "c"]


def test_a_thought_does_not_grow_into_a_text_of_the_same_id() -> None:
    buffer = filled(ReasoningDelta(message_id="m", text="thinks"), *said("says"))
    assert [type(record.event) for record in buffer.take()] == [ReasoningDelta, TextDelta]


def test_who_speaks_stays() -> None:
    buffer = filled(*(TextDelta(agent_id="helper", message_id="m", text=text) for text in "ab"))
    assert buffer.take()[0].event == TextDelta(agent_id="helper", message_id="m", text="ab")


def test_a_record_never_becomes_too_large_for_the_log() -> None:
    buffer = filled(*said(*["\x01" * 1000] * 20))
    records = buffer.take()
    assert sum(map(len, texts(records))) == 20_000
    assert all(json_size(text) <= MAX_DELTA for text in texts(records))
    assert len(records) > 20_000 // MAX_JOINED


def test_all_that_was_said_counts_until_it_is_in_the_log() -> None:
    buffer = filled(*said("a", "b"), Status(text="s"))
    assert buffer.uncommitted == 3
    buffer.take()
    buffer.append_delta(said("c")[0])
    buffer.take()
    assert (buffer.uncommitted, bool(buffer)) == (4, False)
    buffer.committed()
    assert buffer.uncommitted == 1
    buffer.committed()
    assert buffer.uncommitted == 0


KINDS = st.sampled_from(["take", "m", "n", "thought", "status"])


@given(st.lists(st.tuples(KINDS, st.text(max_size=5)), max_size=60))
def test_nothing_is_lost_and_the_numbers_have_no_gap(steps: list[tuple[str, str]]) -> None:
    buffer = WriteBuffer("run_1", 0, 0)
    given_: list[tuple[str, str]] = []
    records: list[Record] = []
    for kind, text in steps:
        if kind == "take":
            records += buffer.take()
            continue
        given_.append((kind, text))
        if kind == "status":
            buffer.append([Status(text=text)])
        elif kind == "thought":
            buffer.append_delta(ReasoningDelta(message_id="m", text=text))
        else:
            buffer.append_delta(TextDelta(message_id=kind, text=text))
    records += buffer.take()
    assert [record.seq for record in records] == list(range(1, len(records) + 1))
    found = [(_kind(record.event), text) for record, text in zip(records, texts(records), strict=True)]
    assert _squeezed(found) == _squeezed(given_)


def _kind(event: AnyEvent) -> str:
    if isinstance(event, TextDelta):
        return event.message_id
    return "thought" if isinstance(event, ReasoningDelta) else "status"


def _squeezed(pieces: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """Neighbouring pieces of one text as one; lines of status stay as they are."""
    joined: list[tuple[str, str]] = []
    for kind, text in pieces:
        if joined and joined[-1][0] == kind != "status":
            joined[-1] = (kind, joined[-1][1] + text)
        else:
            joined.append((kind, text))
    return joined
