"""What ben's runs take: alone, beside a neighbour at all her limits, and beside one who asks for more than that.

They take turns, each time with a server of its own: what the neighbour has asked for in a minute counts, and her runs
do not end.
"""

import json
import os
import statistics
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack

import msgspec
from websockets.sync.client import ClientConnection

from benchmarks.client import Client, Job
from benchmarks.measure import Row
from benchmarks.noisy_neighbour.protocol import Kind, Report
from benchmarks.noisy_neighbour.server import House, Process
from benchmarks.server import cores
from benchmarks.workload import SHORT_TOKENS, TOKENS
from limelight.config.schema import LimitSettings

ALONE, AT, BEYOND = "alone", "at her limits", "beyond them"
CONDITIONS: dict[str, tuple[Kind, ...]] = {ALONE: (), AT: ("streams", "requests"), BEYOND: ("streams", "flood")}
"""What the neighbour does meanwhile."""
PAUSE = 0.02
"""Seconds between two pings."""


class NeighboursPlan(msgspec.Struct, frozen=True, kw_only=True):
    """How much is done in one repeat, each way."""

    repeats: int = 5
    requests: int = 100
    """For the first event."""
    runs: int = 10
    pings: int = 100
    tokens: int = TOKENS
    limits: LimitSettings = msgspec.field(default_factory=LimitSettings)


QUICK = NeighboursPlan(repeats=2)


class NeighboursFigures(msgspec.Struct):
    """All figures: by row and condition, one per repeat."""

    rows: dict[Row, dict[str, list[float]]] = {}
    answers: dict[str, dict[str, int]] = {}
    """What the neighbour was answered, in all repeats: by condition, and by `body 200` and the like."""
    load: float = msgspec.field(default_factory=lambda: os.getloadavg()[0])
    """Of the machine, before."""

    def add(self, what: str, unit: str, condition: str, value: float) -> None:
        self.rows.setdefault(Row(what, unit), {}).setdefault(condition, []).append(value)

    def note(self, condition: str, report: Report) -> None:
        for answer, count in report.answers.items():
            of_all = self.answers.setdefault(condition, {})
            of_all[answer] = of_all.get(answer, 0) + count

    def ratio(self, row: Row, condition: str) -> float:
        """The median of the ratios to the same alone, within each repeat."""
        pairs = zip(self.rows[row][condition], self.rows[row][ALONE], strict=True)
        return statistics.median(a / b for a, b in pairs)


def measure_neighbours(plan: NeighboursPlan, say: Callable[[str], None]) -> NeighboursFigures:
    """Everything. Ends whatever it has started, also when something fails."""
    figures = NeighboursFigures()
    for repeat in range(plan.repeats):
        began = time.monotonic()
        for condition in CONDITIONS:
            _measure_once(plan, figures, condition)
        say(f"neighbours, repeat {repeat + 1} of {plan.repeats}: {time.monotonic() - began:.0f} s")
    return figures


def _measure_once(plan: NeighboursPlan, figures: NeighboursFigures, condition: str) -> None:
    server_core, client_core = cores()
    with ExitStack() as stack:
        if client_core is not None:
            stack.callback(os.sched_setaffinity, 0, os.sched_getaffinity(0))
            os.sched_setaffinity(0, {client_core})
        client = stack.enter_context(Client(client_core))
        house = stack.enter_context(House(plan.limits, server_core, plan.tokens))
        ben = Ben(plan, house, client, figures)
        ben.warm_up()
        before = house.rss()
        ann = house.key("ann")
        with ExitStack() as hers:
            kinds = CONDITIONS[condition]
            busy = [hers.enter_context(Process(house, kind, ann, plan.limits, client_core)) for kind in kinds]
            ben.measure(condition)
            figures.add("server's memory, grown by", "MB", condition, (house.rss() - before) / 1e6)
        for process in busy:
            figures.note(condition, process.report)


class Ben:
    """The user who is measured."""

    def __init__(self, plan: NeighboursPlan, house: House, client: Client, figures: NeighboursFigures) -> None:
        self._plan = plan
        self._house = house
        self._client = client
        self._figures = figures
        self._key = house.key("ben")

    def warm_up(self) -> None:
        for mode in ("short", "turn"):
            self._client.do(self._job(mode, 5))

    def measure(self, condition: str) -> None:
        first = self._client.do(self._job("short", self._plan.requests)).latencies
        whole = self._client.do(self._job("turn", self._plan.runs)).durations
        with self._house.socket(self._key) as socket:
            pings = _pings(socket, self._plan.pings)
        self._add("first event", condition, first)
        self._figures.add("whole run, median", "ms", condition, statistics.median(whole) * 1e3)
        self._figures.add("whole run, longest", "ms", condition, max(whole) * 1e3)
        self._add("ping", condition, pings)

    def _add(self, what: str, condition: str, seconds: Sequence[float]) -> None:
        cuts = statistics.quantiles(seconds, n=100, method="inclusive")
        self._figures.add(f"{what}, median", "ms", condition, cuts[49] * 1e3)
        self._figures.add(f"{what}, p99", "ms", condition, cuts[98] * 1e3)

    def _job(self, mode: str, runs: int) -> Job:
        tokens = SHORT_TOKENS if mode == "short" else self._plan.tokens
        return Job(
            kind="streams",
            port=self._house.port,
            path="/chat/stream",
            mode=mode,
            tokens=tokens,
            runs=runs,
            key=self._key,
        )


def _pings(socket: ClientConnection, count: int) -> list[float]:
    found: list[float] = []
    for _ in range(count):
        sent = time.perf_counter()
        socket.send('{"type": "ping"}')
        while json.loads(socket.recv(30)).get("type") != "pong":
            pass
        found.append(time.perf_counter() - sent)
        time.sleep(PAUSE)
    return found
