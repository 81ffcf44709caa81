"""The benchmark measures what it says: the same events from every server, all of them counted. No timings here."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from benchmarks.client import Client, Job
from benchmarks.measure import OTHER_EVENTS, Bench, Figures, Plan
from benchmarks.report import document, table
from benchmarks.server import BARE, LIMELIGHT, NAMES, SSE_STARLETTE, Server
from benchmarks.stream import open_stream
from benchmarks.workload import frames, payloads
from tests.system.processes.server_process import joined

TOKENS = 20
PLAN = Plan(repeats=1, runs=2, streams=3, requests=3, viewers=(1, 2), idle=3, tokens=TOKENS)


@pytest.fixture(scope="module")
def client() -> Iterator[Client]:
    with Client() as client:
        yield client


def job(server: Server, mode: str = "turn", tokens: int = TOKENS) -> Job:
    return Job(kind="streams", port=server.port, path=server.path(mode), mode=mode, tokens=tokens, streams=2, runs=2)


def test_the_workload_has_the_events_that_are_counted() -> None:
    kinds = [payload["type"] for payload in payloads(TOKENS)]
    assert len(kinds) == len(frames(TOKENS)) == TOKENS + OTHER_EVENTS
    assert {kind: kinds.count(kind) for kind in kinds} == {
        "status": 2,
        "tool_start": 5,
        "tool_end": 5,
        "agent_start": 2,
        "agent_end": 2,
        "token": TOKENS,
        "done": 1,
    }


@pytest.mark.parametrize("name", [BARE, SSE_STARLETTE])
def test_the_others_send_every_event(name: str, client: Client) -> None:
    with Server(name, tokens=TOKENS) as server:
        outcome = client.do(job(server))
        assert outcome.frames == 4 * (TOKENS + OTHER_EVENTS)
        assert len(outcome.latencies) == 4
        with pytest.raises(RuntimeError, match="Incomplete"):
            client.do(job(server, tokens=TOKENS + 1))


def told(sent: bytes) -> list[Any]:
    """What a stream says, whatever it joins."""
    lines = [line.removeprefix(b"data: ") for line in sent.split(b"\n") if line.startswith(b"data: ")]
    return joined("typed", [("", json.loads(line)) for line in lines])


async def test_limelight_says_what_bare_says_and_each_cell_gives_a_figure(client: Client) -> None:
    figures = Figures()
    with Server(LIMELIGHT, tokens=TOKENS) as server:
        body = {"agent": "burst", "messages": [{"role": "user", "content": "go"}]}
        stream = await open_stream(server.port, "POST", server.path("burst"), body)
        await stream.whole(TOKENS)
        assert told(bytes(stream.body)) == told(b"".join(frames(TOKENS)))

        bench = Bench(PLAN, client, figures)
        for cell in (bench.one_stream, bench.many_streams, bench.burst, bench.first_event, bench.viewers, bench.memory):
            cell(server)
        assert server.cpu() > 0
    assert [row.what for row in figures.rows] == [
        "CPU per event, 1 stream",
        "CPU per event, 3 streams",
        "CPU per event, 1 stream, burst",
        "first event, median",
        "first event, p99",
        "CPU per delivered event, 1 viewer of one run",
        "CPU per delivered event, 2 viewers of one run",
        "memory per open stream",
    ]
    assert all(len(by_server[LIMELIGHT]) == 1 for by_server in figures.rows.values())


def test_the_report_shows_medians_and_the_median_of_ratios_within_repeats() -> None:
    figures = Figures()
    for name, values in zip(NAMES, ([2.0, 30.0, 4.0], [1.0, 10.0, 4.0], [8.0, 80.0, 8.0]), strict=True):
        for value in values:
            figures.add("CPU per event", "µs", name, value)
    figures.add("only ours", "kB", LIMELIGHT, 100.0)
    head, _, cpu, ours = table(figures).splitlines()
    assert [cell.strip() for cell in head.split("|")[2:-1]] == [*NAMES, "limelight ÷ bare", "sse-starlette ÷ bare"]
    assert [cell.strip() for cell in cpu.split("|")[2:-1]] == [
        "4.00 [2.00 - 30.0]",
        "4.00 [1.00 - 10.0]",
        "8.00 [8.00 - 80.0]",
        "2.00",
        "8.00",
    ]
    assert [cell.strip() for cell in ours.split("|")[2:-1]] == ["100 [100 - 100]", "–", "–", "–", "–"]
    page = document(figures, PLAN, "## Frameworks\n")
    assert cpu in page and page.endswith("## Frameworks\n")
