"""Random legal runs: no dialect raises, and every payload is JSON below the line limit.

A dialect that raises at one Record would make its whole session unreadable.
"""

from collections.abc import Sequence

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from limelight.events import AnyEvent, Record
from limelight.runs.truncation import fit
from tests.dialects.transcripts import DIALECTS
from tests.support.strategies import RUN_ID, as_records, legal_runs, tangled_runs

MAX_LINE = 64 * 1024


def truncated_records(run: Sequence[AnyEvent]) -> list[Record]:
    return as_records([kept for event in run for kept in fit(event, RUN_ID, 10**6).events])


@pytest.mark.parametrize("name", DIALECTS)
@settings(max_examples=100)
@given(run=tangled_runs() | legal_runs())
def test_every_legal_run_gives_json_lines_below_the_limit(name: str, run: list[AnyEvent]) -> None:
    dialect = DIALECTS[name]()
    for record in truncated_records(run):
        for payload in dialect.feed(record):
            msgspec.json.decode(payload)
            assert len(payload) < MAX_LINE


@pytest.mark.requirement("previews")
@pytest.mark.parametrize("name", DIALECTS)
@settings(max_examples=40)
@given(run=tangled_runs(), size=st.integers(30_000, 80_000))
def test_every_legal_run_with_long_texts_stays_below_the_line_limit(name: str, run: list[AnyEvent], size: int) -> None:
    dialect = DIALECTS[name]()
    for record in truncated_records([_lengthened(event, size) for event in run]):
        for payload in dialect.feed(record):
            assert len(payload) < MAX_LINE


def _lengthened(event: AnyEvent, size: int) -> AnyEvent:
    long = {
        name: getattr(event, name) + "\x1bä" * (size // 2)
        for name in _TEXT_FIELDS
        if isinstance(getattr(event, name, 0), str)
    }
    return msgspec.structs.replace(event, **long)


_TEXT_FIELDS = ("text", "content", "result", "error", "message", "reason")
