"""The comparison of servers: all servers send the same events, and each measurement adds its rows."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from benchmarks.http_stream import chat_body, open_stream
from benchmarks.load_process import Client
from benchmarks.measurement import OTHER_EVENTS, Figures, Plan, ServerBenchmark, make_job
from benchmarks.report import document, table
from benchmarks.server_process import BARE, LIMELIGHT, NAMES, SSE_STARLETTE, workload_server
from benchmarks.workload import frames, payloads
from tests.system.processes.server_process import joined

TOKENS = 20
PLAN = Plan(repeats=1, runs=2, streams=3, requests=3, viewers=(1, 2), idle=3, tokens=TOKENS)


@pytest.fixture(scope="module")
def client() -> Iterator[Client]:
    with Client() as client:
        yield client


def test_workload_has_the_events_that_are_counted() -> None:
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
def test_other_servers_send_every_event(name: str, client: Client) -> None:
    with workload_server(name, tokens=TOKENS) as server:
        result = client.run(make_job(server, "turn", TOKENS, streams=2, runs=2))
        assert result.frames == 4 * (TOKENS + OTHER_EVENTS)
        assert len(result.latencies) == 4
        with pytest.raises(RuntimeError, match="IncompleteStream"):
            client.run(make_job(server, "turn", TOKENS + 1))


def sent_events(sent: bytes) -> list[Any]:
    """The events of a stream, with neighbouring deltas joined."""
    lines = [line.removeprefix(b"data: ") for line in sent.split(b"\n") if line.startswith(b"data: ")]
    return joined("typed", [("", json.loads(line)) for line in lines])


async def test_limelight_sends_the_events_of_bare_and_each_measurement_adds_its_rows(client: Client) -> None:
    figures = Figures()
    with workload_server(LIMELIGHT, tokens=TOKENS) as server:
        stream = await open_stream(server.port, "POST", server.path("burst"), chat_body("burst", "go"))
        await stream.read_workload(TOKENS)
        assert sent_events(bytes(stream.body)) == sent_events(b"".join(frames(TOKENS)))

        benchmark = ServerBenchmark(PLAN, client, figures)
        for measure_row in (
            benchmark.one_stream,
            benchmark.many_streams,
            benchmark.burst,
            benchmark.first_event,
            benchmark.viewers,
            benchmark.memory,
        ):
            measure_row(server)
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


def test_report_shows_medians_and_the_median_of_ratios_within_repeats() -> None:
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
