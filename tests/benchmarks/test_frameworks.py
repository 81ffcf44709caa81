"""The frameworks are measured doing the same work, alone and through Limelight. No timings here."""

from collections.abc import Iterator

import pytest

from benchmarks.client import Client, Job
from benchmarks.frameworks.measure import (
    BASES,
    Base,
    Costs,
    FrameworkFigures,
    Frameworks,
    FrameworksPlan,
    Model,
    Stage,
)
from benchmarks.frameworks.report import HEAD, frameworks_section, frameworks_table

PLAN = FrameworksPlan(rounds=1, tokens=20)


@pytest.fixture(scope="module")
def client() -> Iterator[Client]:
    with Client() as client:
        yield client


@pytest.fixture(scope="module")
def stage() -> Iterator[Stage]:
    with Model(None, PLAN.tokens) as model, Stage(None, model) as stage:
        yield stage


@pytest.mark.parametrize("base", BASES, ids=lambda base: base.name)
def test_each_framework_gives_every_token_in_every_way(base: Base, client: Client, stage: Stage) -> None:
    costs = Costs()
    Frameworks(PLAN, client, stage).round(base, costs)
    assert len(costs.alone) == len(costs.source) == len(costs.limelight) == len(costs.added) == 1
    assert min(*costs.alone, *costs.source, *costs.limelight) > 0


def test_a_token_that_is_missing_is_noticed(client: Client, stage: Stage) -> None:
    job = Job(kind="reply", port=stage.port, path="/alone/agno", mode="agno", tokens=PLAN.tokens + 1)
    with pytest.raises(RuntimeError, match="20 tokens instead of 21"):
        client.do(job)


def test_the_report_shows_the_differences_within_rounds() -> None:
    costs = Costs(alone=[100.0, 300.0, 200.0], source=[104.0, 305.0, 203.0], limelight=[110.0, 320.0, 205.0])
    figures = FrameworkFigures({Base("agno"): costs}, load=0.5)
    head, _, row = frameworks_table(figures).splitlines()
    assert [cell.strip() for cell in head.split("|")[1:-1]] == HEAD
    assert [cell.strip() for cell in row.split("|")[1:-1]] == [
        "agno",
        "200 [100 - 300]",
        "203 [104 - 305]",
        "205 [110 - 320]",
        "10.0 [5.00 - 20.0]",
        "4.00 [3.00 - 5.00]",
    ]
    page = frameworks_section(figures, PLAN)
    assert row in page and "it was met" in page
    costs.limelight[0] = costs.limelight[2] = 400.0
    assert "missed for: agno." in frameworks_section(figures, PLAN)
