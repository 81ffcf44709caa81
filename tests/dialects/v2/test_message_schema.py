"""The schema of v2 messages against the messages of the dialect."""

from collections.abc import Iterable
from random import Random
from typing import Any, get_args

import msgspec
from hypothesis import given, settings

from limelight.dialects.v2 import V2Dialect
from limelight.dialects.v2.message_schema import MessageType, Metadata, RunMessage
from limelight.events import (
    AnyEvent,
    ApprovalRequested,
    ArtifactMade,
    FinalAnswer,
    RunFinished,
    RunStarted,
    StepFinished,
    StepStarted,
    TextDelta,
)
from limelight.runs.truncation import fit
from tests.dialects.transcripts import SCRIPTS, live
from tests.support.json_schemas import Checker, strict
from tests.support.strategies import RUN_ID, as_records, legal_runs, write_run

REF = "#/components/schemas/{name}"
_, COMPONENTS = msgspec.json.schema_components([RunMessage], ref_template=REF)
CHECKER = Checker({"schemas": strict(COMPONENTS)}, "#/components/schemas/RunMessage")

RARE_RUNS: list[list[AnyEvent]] = [
    [RunStarted(agent="a"), TextDelta(message_id="long", text="word " * 20_000)],
    [RunStarted(agent="a"), StepStarted(number=1), StepFinished(number=1, error="no"), RunFinished(code="max_steps")],
    [RunStarted(agent="a"), ArtifactMade(artifact_id="art_1", name="a.txt", media_type="text/plain", size=1)],
    [RunStarted(agent="a"), ApprovalRequested(approval_id="p", name="rm", args="raw")],
    [RunStarted(agent="a"), *fit(FinalAnswer(content="x" * 100_000), RUN_ID, 10**6).events],
    [*fit(RunStarted(agent="a", input="x" * 100_000), RUN_ID, 10**6).events],
]
RUNS: list[list[AnyEvent]] = [*SCRIPTS.values(), *RARE_RUNS, *(write_run(Random(seed), 100) for seed in range(20))]


def messages_of(run: Iterable[AnyEvent]) -> list[dict[str, Any]]:
    """Return the messages of a run as a transport sends them."""
    frames = live(V2Dialect, as_records(list(run)))
    return [{"session_id": "s", "cursor": frame.id, **msgspec.json.decode(frame.data)} for frame in frames]


def test_metadata_keys_of_all_runs_equal_the_documented_ones() -> None:
    sent = {key for run in RUNS for message in messages_of(run) for key in message["metadata"]}
    assert sent == {*Metadata.__required_keys__, *Metadata.__optional_keys__}


def test_message_types_of_all_runs_equal_the_documented_ones() -> None:
    sent = {message["metadata"]["message_type"] for run in RUNS for message in messages_of(run)}
    assert sent == {*get_args(MessageType)}


def test_messages_of_scripted_runs_match_the_schema() -> None:
    for run in RUNS:
        for message in messages_of(run):
            assert CHECKER.faults(message) == [], message


@settings(max_examples=60)
@given(legal_runs(cut=False))
def test_messages_of_random_runs_match_the_schema(run: list[AnyEvent]) -> None:
    for message in messages_of(run):
        assert CHECKER.faults(message) == [], message
