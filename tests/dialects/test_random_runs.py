"""No run that the grammar allows makes any dialect raise, or send what is no JSON or too long for a line.

A dialect that raises at one Record leaves its whole session unreadable, for ever.
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


def in_the_log(run: Sequence[AnyEvent]) -> list[Record]:
    return as_records([kept for event in run for kept in fit(event, RUN_ID, 10**6).events])


@pytest.mark.parametrize("name", DIALECTS)
@settings(max_examples=100)
@given(run=tangled_runs() | legal_runs())
def test_every_legal_run_gives_json_lines_below_the_limit(name: str, run: list[AnyEvent]) -> None:
    dialect = DIALECTS[name]()
    for record in in_the_log(run):
        for payload in dialect.feed(record):
            msgspec.json.decode(payload)
            assert len(payload) < MAX_LINE


@pytest.mark.parametrize("name", DIALECTS)
@settings(max_examples=40)
@given(run=tangled_runs(), size=st.integers(30_000, 80_000))
def test_every_legal_run_with_long_texts_stays_below_the_line_limit(name: str, run: list[AnyEvent], size: int) -> None:
    dialect = DIALECTS[name]()
    for record in in_the_log([_longer(event, size) for event in run]):
        for payload in dialect.feed(record):
            assert len(payload) < MAX_LINE


def _longer(event: AnyEvent, size: int) -> AnyEvent:
    long = {
        name: getattr(event, name) + "\x1bä" * (size // 2) for name in _LONG if isinstance(getattr(event, name, 0), str)
    }
    return msgspec.structs.replace(event, **long)


_LONG = ("text", "content", "result", "error", "message", "reason")
