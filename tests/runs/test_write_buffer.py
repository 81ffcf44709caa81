"""The write buffer numbers events and joins deltas that come faster than commits, without loss."""

from hypothesis import given
from hypothesis import strategies as st

from limelight.deltas import MAX_DELTA, json_size
from limelight.events import AnyEvent, ReasoningDelta, Record, Status, TextDelta
from limelight.runs.write_buffer import MAX_JOINED, WriteBuffer


def deltas(*texts: str, message_id: str = "m") -> list[TextDelta]:
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


def test_deltas_of_one_text_are_joined_until_they_are_taken() -> None:
    buffer = filled(*deltas("a", "b", "c"))
    assert texts(buffer.take()) == ["abc"]
    buffer.append_delta(deltas("d")[0])
    [record] = buffer.take()
    assert (record.seq, record.run_id, record.event) == (9, "run_1", deltas("d")[0])


def test_deltas_are_not_joined_across_another_event() -> None:
    buffer = filled(*deltas("a"), Status(text="s"), *deltas("b"), *deltas("x", message_id="n"), *deltas("c"))
    assert texts(buffer.take()) == ["a", "s", "b", "x", "c"]


def test_reasoning_and_text_with_one_id_are_not_joined() -> None:
    buffer = filled(ReasoningDelta(message_id="m", text="thinks"), *deltas("says"))
    assert [type(record.event) for record in buffer.take()] == [ReasoningDelta, TextDelta]


def test_joined_delta_keeps_its_agent() -> None:
    buffer = filled(*(TextDelta(agent_id="helper", message_id="m", text=text) for text in "ab"))
    assert buffer.take()[0].event == TextDelta(agent_id="helper", message_id="m", text="ab")


def test_joined_record_stays_within_the_size_limit() -> None:
    buffer = filled(*deltas(*["\x01" * 1000] * 20))
    records = buffer.take()
    assert sum(map(len, texts(records))) == 20_000
    assert all(json_size(text) <= MAX_DELTA for text in texts(records))
    assert len(records) > 20_000 // MAX_JOINED


def test_events_count_as_uncommitted_until_their_commit() -> None:
    buffer = filled(*deltas("a", "b"), Status(text="s"))
    assert buffer.uncommitted == 3
    buffer.take()
    buffer.append_delta(deltas("c")[0])
    buffer.take()
    assert (buffer.uncommitted, bool(buffer)) == (4, False)
    buffer.committed()
    assert buffer.uncommitted == 1
    buffer.committed()
    assert buffer.uncommitted == 0


KINDS = st.sampled_from(["take", "m", "n", "reasoning", "status"])


@given(st.lists(st.tuples(KINDS, st.text(max_size=5)), max_size=60))
def test_records_contain_all_text_and_are_numbered_without_a_gap(steps: list[tuple[str, str]]) -> None:
    buffer = WriteBuffer("run_1", 0, 0)
    appended: list[tuple[str, str]] = []
    records: list[Record] = []
    for kind, text in steps:
        if kind == "take":
            records += buffer.take()
            continue
        appended.append((kind, text))
        if kind == "status":
            buffer.append([Status(text=text)])
        elif kind == "reasoning":
            buffer.append_delta(ReasoningDelta(message_id="m", text=text))
        else:
            buffer.append_delta(TextDelta(message_id=kind, text=text))
    records += buffer.take()
    assert [record.seq for record in records] == list(range(1, len(records) + 1))
    found = [(_kind(record.event), text) for record, text in zip(records, texts(records), strict=True)]
    assert _joined(found) == _joined(appended)


def _kind(event: AnyEvent) -> str:
    if isinstance(event, TextDelta):
        return event.message_id
    return "reasoning" if isinstance(event, ReasoningDelta) else "status"


def _joined(pieces: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """Join neighbouring pieces of one text. Statuses are not joined."""
    joined: list[tuple[str, str]] = []
    for kind, text in pieces:
        if joined and joined[-1][0] == kind != "status":
            joined[-1] = (kind, joined[-1][1] + text)
        else:
            joined.append((kind, text))
    return joined
