"""The framing of server-sent events."""

from limelight.dialects.base import Frame
from limelight.models import Cursor
from limelight.runs.hub import FrameBatch
from limelight.server.sse import sse_framing

FRAMES = [Frame(Cursor(57, 1), b'{"a":1}'), Frame(Cursor(57), b"2")]


def test_framing_writes_the_cursor_as_id_and_the_payload_as_data() -> None:
    assert sse_framing()(FRAMES) == b'id: 57.1\ndata: {"a":1}\n\nid: 57\ndata: 2\n\n'


def test_framing_names_the_event_of_the_dialect() -> None:
    assert sse_framing("message")(FRAMES[1:]) == b"id: 57\nevent: message\ndata: 2\n\n"


def test_framing_without_ids_omits_the_id() -> None:
    assert sse_framing("message").without_ids([b"1", b"2"]) == b"event: message\ndata: 1\n\nevent: message\ndata: 2\n\n"


def test_shared_batch_is_encoded_once_for_equal_framings() -> None:
    batch = FrameBatch(FRAMES, is_shared=True)
    assert batch.encoded(sse_framing("message")) is batch.encoded(sse_framing("message"))
    assert batch.encoded(sse_framing()) == sse_framing()(FRAMES)
