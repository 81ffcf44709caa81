"""Links to tool calls: every call id survives the way through a path, also where clients and proxies normalise it."""

from posixpath import normpath
from urllib.parse import unquote, urlsplit

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from limelight.links import call_id_of_segment, call_segment
from tests.support.strategies import ODD_TEXTS

PARTS = st.sampled_from(["..", ".", "/", "//", "\\", "%2F", "%", "~", "\n", "\r\n", "\t", "?", "#", " ", "a", "é", ":"])
CALL_IDS = st.text(max_size=20) | st.sampled_from(ODD_TEXTS) | st.lists(PARTS, max_size=8).map("".join)


@pytest.mark.requirement("call-ids")
@given(CALL_IDS.filter(lambda text: not any("\ud800" <= c <= "\udfff" for c in text)))
def test_call_id_survives_a_path_that_is_normalised(call_id: str) -> None:
    segment = call_segment(call_id)
    path = f"/runs/run_1/tools/{segment}"
    assert urlsplit(path).path == path
    assert httpx.URL(f"http://h{path}").raw_path.decode() == path
    assert normpath(path) == path  # and no proxy would remove a segment
    assert "/" not in segment and segment.isascii() and segment.isprintable()
    assert call_id_of_segment(unquote(segment)) == call_id


@pytest.mark.parametrize(
    ("call_id", "segment"),
    [
        ("call_1", "call_1"),
        ("functions.search:0", "functions.search%3A0"),
        ("a/b", "a%2Fb"),
        ("%2F", "%252F"),
        ("...", "..."),
        ("..", "~Li4"),
        ("a/../b", "~YS8uLi9i"),
        ("a\nb", "~YQpi"),
        ("", "~"),
        ("~x", "~fng"),
        ("\\ü?>", "~XMO8Pz4"),
    ],
)
def test_segment_of_a_call_id_is_as_documented(call_id: str, segment: str) -> None:
    """The page has the same cases."""
    assert call_segment(call_id) == segment


@pytest.mark.parametrize("segment", ["~x", "~!", "~a b", "~_w"])
def test_segment_that_is_not_base64_of_text_is_the_id_itself(segment: str) -> None:
    assert call_id_of_segment(segment) == segment
