"""Measures the latencies of a user: alone, beside a neighbour who reaches all limits, and beside one who exceeds them.

The conditions take turns, each with a separate server: limits count the neighbour's requests of the last minute, and
her runs do not end.
"""

import os
import statistics
import time
from collections.abc import Sequence
from contextlib import ExitStack

import msgspec

from benchmarks.load_process import Client, Job
from benchmarks.measurement import FigureTable, Log, quantile
from benchmarks.noisy_neighbour.server import Kind, LoadReport, NeighbourProcess, SharedServer
from benchmarks.pings.measurement import PING_INTERVAL_SECONDS, ping_ms
from benchmarks.server_process import cores, pinned
from benchmarks.workload import SHORT_TOKENS, TOKENS
from limelight.config.schema import LimitSettings

ALONE, AT, BEYOND = "alone", "at her limits", "beyond them"
CONDITIONS: dict[str, tuple[Kind, ...]] = {ALONE: (), AT: ("streams", "requests"), BEYOND: ("streams", "flood")}
"""The load generators that the neighbour runs in each condition."""


class NeighboursPlan(msgspec.Struct, frozen=True, kw_only=True):
    """How many repeats, requests, runs and pings are measured in each condition, and with which limits."""

    repeats: int = 5
    requests: int = 100
    """Number of requests for the rows about the first event."""
    runs: int = 10
    pings: int = 100
    tokens: int = TOKENS
    limits: LimitSettings = msgspec.field(default_factory=LimitSettings)


QUICK = NeighboursPlan(repeats=2)


class NeighboursFigures(FigureTable):
    """The figures of the measured user, by condition: alone, or beside the neighbour."""

    answers: dict[str, dict[str, int]] = msgspec.field(default_factory=dict[str, dict[str, int]])
    """The responses that the neighbour got in all repeats: by condition, and by kind and status."""
    load: float = msgspec.field(default_factory=lambda: os.getloadavg()[0])
    """The load of the machine before the benchmark."""

    def add_report(self, condition: str, report: LoadReport) -> None:
        total = self.answers.setdefault(condition, {})
        for answer, count in report.answers.items():
            total[answer] = total.get(answer, 0) + count


def measure_neighbours(plan: NeighboursPlan, log: Log) -> NeighboursFigures:
    """Measure the user alone and beside the neighbour. All processes are ended, also after an error."""
    figures = NeighboursFigures()
    for repeat in range(plan.repeats):
        began = time.monotonic()
        for condition in CONDITIONS:
            _measure_once(plan, figures, condition)
        log(f"neighbours, repeat {repeat + 1} of {plan.repeats}: {time.monotonic() - began:.0f} s")
    return figures


def _measure_once(plan: NeighboursPlan, figures: NeighboursFigures, condition: str) -> None:
    server_core, client_core = cores()
    with ExitStack() as stack:
        stack.enter_context(pinned(client_core))
        client = stack.enter_context(Client(client_core))
        server = stack.enter_context(SharedServer(plan.limits, server_core, plan.tokens))
        ben = MeasuredUser(plan, server, client, figures)
        ben.warm_up()
        before = server.rss()
        key = server.create_key("ann")
        with ExitStack() as load:
            kinds = CONDITIONS[condition]
            processes = [
                load.enter_context(NeighbourProcess(server, kind, key, plan.limits, client_core)) for kind in kinds
            ]
            ben.measure(condition)
            figures.add("server's memory, grown by", "MB", condition, (server.rss() - before) / 1e6)
        for process in processes:
            figures.add_report(condition, process.report)


class MeasuredUser:
    """The user whose latencies are measured."""

    def __init__(self, plan: NeighboursPlan, server: SharedServer, client: Client, figures: NeighboursFigures) -> None:
        self._plan = plan
        self._server = server
        self._client = client
        self._figures = figures
        self._key = server.create_key("ben")

    def warm_up(self) -> None:
        for mode in ("short", "turn"):
            self._client.run(self._job(mode, 5))

    def measure(self, condition: str) -> None:
        latencies = self._client.run(self._job("short", self._plan.requests)).latencies
        durations = self._client.run(self._job("turn", self._plan.runs)).durations
        self._add_quantiles("first event", condition, [latency * 1e3 for latency in latencies])
        self._figures.add("whole run, median", "ms", condition, statistics.median(durations) * 1e3)
        self._figures.add("whole run, longest", "ms", condition, max(durations) * 1e3)
        self._add_quantiles("ping", condition, self._pings())

    def _pings(self) -> list[float]:
        latencies: list[float] = []
        with self._server.socket("pings", "short", self._key) as socket:
            for _ in range(self._plan.pings):
                latencies.append(ping_ms(socket))
                time.sleep(PING_INTERVAL_SECONDS)
        return latencies

    def _add_quantiles(self, what: str, condition: str, milliseconds: Sequence[float]) -> None:
        self._figures.add(f"{what}, median", "ms", condition, quantile(milliseconds, 50))
        self._figures.add(f"{what}, p99", "ms", condition, quantile(milliseconds, 99))

    def _job(self, mode: str, runs: int) -> Job:
        tokens = SHORT_TOKENS if mode == "short" else self._plan.tokens
        path = self._server.path(mode)
        return Job(
            kind="streams", port=self._server.port, path=path, mode=mode, tokens=tokens, runs=runs, key=self._key
        )
