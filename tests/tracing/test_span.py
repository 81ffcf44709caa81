"""The `traceparent` header of W3C Trace Context: valid ones are parsed, invalid ones ignored."""

import pytest

from limelight.tracing.span import RemoteParent, normalize_traceparent, parse_traceparent

TRACE, SPAN = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"


@pytest.mark.parametrize(
    ("header", "is_sampled"),
    [
        (f"00-{TRACE}-{SPAN}-01", True),
        (f" 00-{TRACE}-{SPAN}-00 ", False),
        (f"00-{TRACE}-{SPAN}-03", True),
        (f"cc-{TRACE}-{SPAN}-01-what comes later", True),
    ],
)
def test_valid_traceparent_is_parsed_and_normalized(header: str, is_sampled: bool) -> None:
    assert parse_traceparent(header) == RemoteParent(int(TRACE, 16), int(SPAN, 16), is_sampled)
    assert normalize_traceparent(header) == f"00-{TRACE}-{SPAN}-0{int(is_sampled)}"


@pytest.mark.parametrize(
    "header",
    [
        "",
        "nonsense",
        f"ff-{TRACE}-{SPAN}-01",
        f"00-{TRACE}-{SPAN}-01-more",
        f"00-{'0' * 32}-{SPAN}-01",
        f"00-{TRACE}-{'0' * 16}-01",
        f"00-{TRACE.upper()}-{SPAN}-01",
        f"00-{TRACE}-{SPAN}",
        f"00-{TRACE}-{SPAN}-1",
        f"00-{TRACE}-{SPAN}-01\n",
        f"00-{'٤' * 32}-{SPAN}-01",
        "0" * 100_000,
    ],
)
def test_invalid_traceparent_is_ignored(header: str) -> None:
    assert parse_traceparent(header) is None
    assert normalize_traceparent(header) == ""


def test_missing_traceparent_is_ignored() -> None:
    assert normalize_traceparent(None) == ""
