"""The soak: a ramp finds the highest rate at which delivery stays within a bound, then that is held for minutes."""

import os
import statistics
import time
from collections.abc import Callable, Iterable

import msgspec

from benchmarks.server import cores
from benchmarks.soak.protocol import Order, Second
from benchmarks.soak.server import LoadProcess, SoakServer

BOUND_MS = 500.0
"""What nineteen of twenty numbers have to stay below: beyond it the server, or the machine, is behind."""
SETTLING = 3
"""A third of a step, in which the rate before still counts."""
FACTOR = 1.4
"""Between the rates of two steps."""
NARROWING = 3
"""Steps between the last rate that was within the bound and the first that was not: each halves what is unknown."""
LESS = 0.9
"""Of a rate that was too high in a trial: the next one that is tried."""
HELD = 0.9
"""Of the rate that has passed its trial: minutes see checkpoints, collections of garbage and other programs that half a
minute does not, and who has fallen behind at the very limit cannot catch up."""
FIRST_RATE = 0.5
MAX_GROWN = 30.0
"""MB by which memory may grow while the rate is held, by the line through the samples after the warm-up."""
WARM_UP = 0.25
"""Of the time at the held rate, which does not count for memory."""
OPENING_SECONDS = 120
CLOSING_SECONDS = 20


class SoakPlan(msgspec.Struct, frozen=True, kw_only=True):
    """How much, and for how long."""

    minutes: float = 10
    sessions: int = 200
    viewers: int = 5
    """Of each session, beside the one that asks."""
    open: int = 1000
    """So many streams are open at every moment; those that have left and are on their way back come on top."""
    stay_seconds: float = 10
    steps: int = 16
    """At most, each at a higher rate than the one before."""
    step_seconds: int = 6
    trial_seconds: int = 30
    """How long a rate has to stay within the bound before it is held."""
    trials: int = 6
    """At most."""


class Sample(msgspec.Struct, frozen=True):
    """Of the server process."""

    at: float
    rss_mb: float
    files: int


class SoakFigures(msgspec.Struct, kw_only=True):
    """What came of it."""

    load: float = 0.0
    """Of the machine, before."""
    highest: float = 0.0
    """Numbers that each run said in a second, in the trial that was within the bound."""
    rate: float = 0.0
    """The same while the rate was held."""
    wanted: int = 0
    """Streams that have to be open."""
    seconds: list[Second] = []
    """While it was held, and until the last number had come."""
    samples: list[Sample] = []
    lost: int = 0
    """In all, the ramp too; likewise those below."""
    doubled: int = 0
    broken: int = 0
    files_after: int = 0
    """Once all streams were closed."""

    def open(self) -> tuple[float, int]:
        """Streams that were open while the rate was held: the median and the least."""
        found = [second.streams for second in self.seconds]
        return statistics.median(found), min(found)

    def delivered(self) -> float:
        """Numbers a second, over all streams."""
        return statistics.fmean(second.numbers for second in self.seconds)

    def percentile(self, percent: int) -> float:
        """Milliseconds."""
        return percentile(self.seconds, percent)

    def slope(self) -> float:
        """MB a minute, after the warm-up."""
        warm = self.samples[int(len(self.samples) * WARM_UP) :]
        return 60 * statistics.linear_regression([s.at for s in warm], [s.rss_mb for s in warm]).slope

    def grown(self) -> float:
        """MB, by that line, over all the time that counts."""
        warm = self.samples[int(len(self.samples) * WARM_UP) :]
        return self.slope() * (warm[-1].at - warm[0].at) / 60

    def faults(self) -> list[str]:
        """Why it has failed; nothing if it has not."""
        found = [
            f"{count} numbers were {what}" for what, count in (("lost", self.lost), ("doubled", self.doubled)) if count
        ]
        if self.broken:
            found.append(f"{self.broken} streams broke off")
        if self.seconds and self.open()[1] < self.wanted:
            found.append(f"only {self.open()[1]:,} streams were open at times, and {self.wanted:,} have to be")
        if self.seconds and self.percentile(95) > BOUND_MS:
            found.append(f"95 % took {self.percentile(95):.0f} ms, and {BOUND_MS:.0f} ms is the bound")
        if self.grown() > MAX_GROWN:
            found.append(f"memory grew by {self.grown():.0f} MB, and {MAX_GROWN:.0f} MB is the bound")
        return found


def percentile(seconds: Iterable[Second], percent: int) -> float:
    latencies = [latency for second in seconds for latency in second.latencies]
    return statistics.quantiles(latencies, n=100)[percent - 1] if len(latencies) > 1 else float("inf")


class Soak:
    """One soak, with what it has seen so far."""

    def __init__(self, plan: SoakPlan, server: SoakServer, load: LoadProcess, say: Callable[[str], None]) -> None:
        self._plan = plan
        self._server = server
        self._load = load
        self._say = say
        self.figures = SoakFigures(load=os.getloadavg()[0], wanted=plan.open)

    def run(self) -> SoakFigures:
        self._until_open()
        self.figures.highest = self._tried(self._ramp())
        self.figures.rate = self.figures.highest * HELD
        self._hold()
        self._end()
        return self.figures

    def _until_open(self) -> None:
        deadline = time.monotonic() + OPENING_SECONDS
        while (second := self._second()).streams < self._plan.open:
            if time.monotonic() > deadline:
                raise RuntimeError(f"only {second.streams} of {self._plan.open} streams could be opened")

    def _ramp(self) -> float:
        """The highest rate that is within the bound for some seconds."""
        rate = good = FIRST_RATE
        bad = 0.0
        for _ in range(self._plan.steps):
            if self._is_within(rate, self._plan.step_seconds):
                good, rate = rate, rate * FACTOR
            else:
                bad = rate
                break
        for _ in range(NARROWING if bad else 0):
            rate = (good * bad) ** 0.5
            self._recover(good)
            if self._is_within(rate, self._plan.step_seconds):
                good = rate
            else:
                bad = rate
        return good

    def _tried(self, rate: float) -> float:
        """That rate, or the next lower one that is within the bound for longer."""
        for _ in range(self._plan.trials):
            self._recover(rate * LESS)
            if self._is_within(rate, self._plan.trial_seconds):
                return rate
            rate *= LESS
        raise RuntimeError(
            f"no rate could be held for {self._plan.trial_seconds} s: the machine has too much else to do"
        )

    def _is_within(self, rate: float, seconds: int) -> bool:
        self._server.set_rate(rate)
        found = [self._second() for _ in range(seconds)][self._plan.step_seconds // SETTLING :]
        p95 = percentile(found, 95)
        delivered = statistics.fmean(second.numbers for second in found)
        streams = min(second.streams for second in found)
        self._say(
            f"{rate:.2f} a second and run for {seconds} s: {delivered:,.0f} a second delivered to at least {streams:,}"
            f" streams, 95 % in {p95:.0f} ms"
        )
        return p95 <= BOUND_MS and streams >= self._plan.open

    def _recover(self, rate: float) -> None:
        """Let what a rate that was too high has left behind be delivered."""
        self._server.set_rate(rate / 2)
        for _ in range(self._plan.step_seconds):
            self._second()

    def _hold(self) -> None:
        self._server.set_rate(self.figures.rate)
        for _ in range(self._plan.step_seconds):  # what the last step of the ramp has left behind
            self._second()
        until = time.monotonic() + 60 * self._plan.minutes
        told = time.monotonic()
        while (now := time.monotonic()) < until:
            self.figures.seconds.append(self._second())
            self.figures.samples.append(Sample(now, self._server.rss() / 2**20, self._server.files()))
            if now > told + 30:
                told = now
                self._say(f"{(until - now) / 60:.1f} minutes left, {self.figures.samples[-1].rss_mb:.0f} MB")

    def _end(self) -> None:
        self._load.end()
        self._second()  # it knows by now that runs may end early
        self._server.set_rate(0)
        while not self._second().last:
            pass
        deadline = time.monotonic() + CLOSING_SECONDS
        while self._server.connections() and time.monotonic() < deadline:
            time.sleep(0.1)
        self.figures.files_after = self._server.files()

    def _second(self) -> Second:
        second = self._load.second()
        self._count(second)
        return second

    def _count(self, second: Second) -> None:
        self.figures.lost += second.lost
        self.figures.doubled += second.doubled
        self.figures.broken += second.broken


def measure_soak(plan: SoakPlan, say: Callable[[str], None]) -> SoakFigures:
    server_core, client_core = cores()
    with SoakServer(plan.sessions + 50, server_core) as server:
        order = Order(port=server.port, sessions=plan.sessions, viewers=plan.viewers, stay_seconds=plan.stay_seconds)
        with LoadProcess(order, client_core) as load:
            return Soak(plan, server, load, say).run()
