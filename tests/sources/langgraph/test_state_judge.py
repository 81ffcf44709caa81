# pyright: reportMissingTypeStubs=false
"""The judge that compares a log with a graph's state: it finds what is missing, doubled or in another order."""

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from msgspec.structs import replace

from limelight.events import Record, TextDelta, ToolFinished, ToolStarted
from tests.sources.langgraph import branch_graphs as graphs
from tests.sources.langgraph.state_judge import StateJudge
from tests.sources.langgraph.test_branches import SCRIPT
from tests.sources.live_turn import FinishedRun, run_agent


def without_first_text(records: Sequence[Record]) -> list[Record]:
    (first, *_) = [record.event.message_id for record in records if isinstance(record.event, TextDelta)]
    return [record for record in records if getattr(record.event, "message_id", None) != first]


def without_a_result(records: Sequence[Record]) -> list[Record]:
    first = next(record for record in records if isinstance(record.event, ToolFinished))
    return [record for record in records if record is not first]


def with_a_text_twice(records: Sequence[Record]) -> list[Record]:
    (first, *_) = [record.event.message_id for record in records if isinstance(record.event, TextDelta)]
    said = [r for r in records if isinstance(r.event, TextDelta) and r.event.message_id == first]
    again = [Record(r.seq, r.run_id, r.at, replace(r.event, message_id="again")) for r in said]
    return [*records[:-2], *again, *records[-2:]]


def with_a_call_twice(records: Sequence[Record]) -> list[Record]:
    calls = [record for record in records if isinstance(record.event, ToolStarted | ToolFinished)]
    return [*records[:-2], *calls, *records[-2:]]


def with_the_last_text_first(records: Sequence[Record]) -> list[Record]:
    last = [record.event.message_id for record in records if isinstance(record.event, TextDelta)][-1]
    moved = [record for record in records if getattr(record.event, "message_id", None) == last][:-1]
    return [records[0], *moved, *(record for record in records[1:] if record not in moved)]


def unchanged(records: Sequence[Record]) -> list[Record]:
    return list(records)


@pytest.mark.parametrize(
    ("damage", "is_right"),
    [
        (unchanged, True),
        (without_first_text, False),
        (without_a_result, False),
        (with_a_text_twice, False),
        (with_a_call_twice, False),
        (with_the_last_text_first, False),
    ],
)
async def test_judge_accepts_only_the_log_that_holds_the_state(
    tmp_path: Path, damage: Callable[[Sequence[Record]], list[Record]], is_right: bool
) -> None:
    judge = StateJudge(graphs.two_loops)
    run = await run_agent(judge, SCRIPT, tmp_path)
    damaged = FinishedRun(damage(run.records))
    if is_right:
        await judge.check(damaged)
        return
    with pytest.raises(AssertionError):
        await judge.check(damaged)
