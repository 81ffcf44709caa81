"""The soak test: finds the highest rate at which the latency stays below a limit, and then holds almost that rate."""

import os
import statistics
import time
from collections.abc import Iterable

import msgspec

from benchmarks.measurement import Log, quantile
from benchmarks.server_process import cores
from benchmarks.soak.server import LoadOrder, LoadReport, SoakLoad, SoakServer

MAX_P95_MS = 500.0
"""The latency limit of 95 % of the numbers; a server above it is behind."""
SETTLING_PART = 3
"""The first 1/SETTLING_PART of a step is not counted, because numbers of the previous rate still arrive."""
RATE_FACTOR = 1.4
"""The ratio of the rates of two steps of the ramp."""
BISECTIONS = 3
"""Number of bisection steps between the highest rate within the limit and the lowest rate beyond it."""
RETRY_FACTOR = 0.9
"""The rate after a failed trial, relative to the rate of that trial."""
HELD_PART = 0.9
"""The held rate, relative to the highest one: minutes include checkpoints, garbage collections and other programs that
half a minute does not, and a server at its limit could never catch up."""
FIRST_RATE = 0.5
MAX_GROWTH_MB = 30.0
"""The limit of the growth of memory while the rate is held, by a linear fit of the samples after the warm-up."""
WARM_UP_PART = 0.25
"""The part of the time at the held rate that is not counted for the growth of memory."""
OPENING_SECONDS = 120
CLOSING_SECONDS = 20


class SoakPlan(msgspec.Struct, frozen=True, kw_only=True):
    """The size and the duration of the soak test."""

    minutes: float = 10
    sessions: int = 200
    viewers: int = 5
    """Viewers of each session, besides the client that starts its runs."""
    open: int = 1000
    """Streams that have to be open at every moment; others are about to reconnect."""
    stay_seconds: float = 10
    steps: int = 16
    """Maximum number of steps of the ramp."""
    step_seconds: int = 6
    trial_seconds: int = 30
    """How long a rate has to stay within the limit before it is held."""
    trials: int = 6
    """Maximum number of trials."""


class Sample(msgspec.Struct, frozen=True):
    """Memory and open files of the server at one time."""

    at: float
    rss_mb: float
    files: int


class SoakFigures(msgspec.Struct, kw_only=True):
    """The results of a soak test."""

    load: float = 0.0
    """The load of the machine before the test."""
    highest: float = 0.0
    """Numbers per run and second in the successful trial."""
    rate: float = 0.0
    """Numbers per run and second while the rate was held."""
    wanted: int = 0
    """Streams that have to be open."""
    reports: list[LoadReport] = []
    """The reports of the load generator while the rate was held."""
    samples: list[Sample] = []
    lost: int = 0
    """Numbers lost in the complete test, including the ramp. The next two fields also count over the complete test."""
    doubled: int = 0
    broken: int = 0
    files_after: int = 0
    """Open files after all streams were closed."""

    def open_streams(self) -> tuple[float, int]:
        """Return the median and the lowest number of open streams while the rate was held."""
        counts = [report.streams for report in self.reports]
        return statistics.median(counts), min(counts)

    def delivered(self) -> float:
        """Return the numbers that all streams together received per second."""
        return statistics.fmean(report.numbers for report in self.reports)

    def percentile(self, percent: int) -> float:
        """Return a percentile of the latency in milliseconds."""
        return latency_percentile(self.reports, percent)

    def mb_per_minute(self) -> float:
        """Return the growth of memory in MB per minute after the warm-up, by a linear fit."""
        samples = self._warm_samples()
        return 60 * statistics.linear_regression([s.at for s in samples], [s.rss_mb for s in samples]).slope

    def growth_mb(self) -> float:
        """Return the growth of memory in MB from the warm-up to the end, by a linear fit."""
        samples = self._warm_samples()
        return self.mb_per_minute() * (samples[-1].at - samples[0].at) / 60

    def _warm_samples(self) -> list[Sample]:
        return self.samples[int(len(self.samples) * WARM_UP_PART) :]

    def faults(self) -> list[str]:
        """Return the reasons why the test has failed; empty if it has passed."""
        found = [
            f"{count} numbers were {what}" for what, count in (("lost", self.lost), ("doubled", self.doubled)) if count
        ]
        if self.broken:
            found.append(f"{self.broken} streams ended by themselves")
        if self.reports and self.open_streams()[1] < self.wanted:
            found.append(f"only {self.open_streams()[1]:,} streams were open at times instead of {self.wanted:,}")
        if self.reports and self.percentile(95) > MAX_P95_MS:
            found.append(f"95 % took {self.percentile(95):.0f} ms, the limit is {MAX_P95_MS:.0f} ms")
        if self.growth_mb() > MAX_GROWTH_MB:
            found.append(f"memory grew by {self.growth_mb():.0f} MB, the limit is {MAX_GROWTH_MB:.0f} MB")
        return found


def latency_percentile(reports: Iterable[LoadReport], percent: int) -> float:
    latencies = [latency for report in reports for latency in report.latencies]
    return quantile(latencies, percent) if len(latencies) > 1 else float("inf")


class SoakTest:
    """Runs a soak test: finds the highest rate, holds it, and collects the figures."""

    def __init__(self, plan: SoakPlan, server: SoakServer, load: SoakLoad, log: Log) -> None:
        self._plan = plan
        self._server = server
        self._load = load
        self._log = log
        self.figures = SoakFigures(load=os.getloadavg()[0], wanted=plan.open)

    def run(self) -> SoakFigures:
        self._wait_until_open()
        self.figures.highest = self._confirmed(self._ramp())
        self.figures.rate = self.figures.highest * HELD_PART
        self._hold()
        self._end()
        return self.figures

    def _wait_until_open(self) -> None:
        deadline = time.monotonic() + OPENING_SECONDS
        while (report := self._next_report()).streams < self._plan.open:
            if time.monotonic() > deadline:
                raise RuntimeError(f"only {report.streams} of {self._plan.open} streams could be opened")

    def _ramp(self) -> float:
        """Find the highest rate that stays within the latency limit for one step."""
        rate = good = FIRST_RATE
        bad = 0.0
        for _ in range(self._plan.steps):
            if not self._is_within_limit(rate, self._plan.step_seconds):
                bad = rate
                break
            good, rate = rate, rate * RATE_FACTOR
        for _ in range(BISECTIONS if bad else 0):
            rate = (good * bad) ** 0.5
            self._recover(good)
            if self._is_within_limit(rate, self._plan.step_seconds):
                good = rate
            else:
                bad = rate
        return good

    def _confirmed(self, rate: float) -> float:
        """Return the first rate, from this one downwards, that stays within the latency limit for a trial."""
        for _ in range(self._plan.trials):
            self._recover(rate * RETRY_FACTOR)
            if self._is_within_limit(rate, self._plan.trial_seconds):
                return rate
            rate *= RETRY_FACTOR
        raise RuntimeError(f"no rate could be held for {self._plan.trial_seconds} s: the machine is too busy")

    def _is_within_limit(self, rate: float, seconds: int) -> bool:
        self._server.set_rate(rate)
        reports = [self._next_report() for _ in range(seconds)][self._plan.step_seconds // SETTLING_PART :]
        p95 = latency_percentile(reports, 95)
        delivered = statistics.fmean(report.numbers for report in reports)
        streams = min(report.streams for report in reports)
        self._log(
            f"{rate:.2f} a second and run for {seconds} s: {delivered:,.0f} a second delivered to at least {streams:,}"
            f" streams, 95 % in {p95:.0f} ms"
        )
        return p95 <= MAX_P95_MS and streams >= self._plan.open

    def _recover(self, rate: float) -> None:
        """Halve the rate for one step, so that delayed numbers are delivered."""
        self._server.set_rate(rate / 2)
        self._skip_step()

    def _skip_step(self) -> None:
        for _ in range(self._plan.step_seconds):
            self._next_report()

    def _hold(self) -> None:
        self._server.set_rate(self.figures.rate)
        self._skip_step()
        until = time.monotonic() + 60 * self._plan.minutes
        logged_at = time.monotonic()
        while (now := time.monotonic()) < until:
            self.figures.reports.append(self._next_report())
            self.figures.samples.append(Sample(now, self._server.rss() / 2**20, self._server.open_files()))
            if now > logged_at + 30:
                logged_at = now
                self._log(f"{(until - now) / 60:.1f} minutes left, {self.figures.samples[-1].rss_mb:.0f} MB")

    def _end(self) -> None:
        self._load.end()
        self._next_report()  # from now on, the load generator does not count a run that ends early as broken
        self._server.set_rate(0)
        while not self._next_report().last:
            pass
        deadline = time.monotonic() + CLOSING_SECONDS
        while self._server.connections() and time.monotonic() < deadline:
            time.sleep(0.1)
        self.figures.files_after = self._server.open_files()

    def _next_report(self) -> LoadReport:
        report = self._load.next_report()
        self.figures.lost += report.lost
        self.figures.doubled += report.doubled
        self.figures.broken += report.broken
        return report


def measure_soak(plan: SoakPlan, log: Log) -> SoakFigures:
    server_core, client_core = cores()
    with SoakServer(plan.sessions + 50, server_core) as server:
        order = LoadOrder(
            port=server.port, sessions=plan.sessions, viewers=plan.viewers, stay_seconds=plan.stay_seconds
        )
        with SoakLoad(order, client_core) as load:
            return SoakTest(plan, server, load, log).run()
