"""Measures what each flood costs another user and the server: latencies, memory and CPU time.

Each measurement has a new server process. The server has one core; the measured user and the flooding client, which has
a lower priority, share another one.
"""

import os
import threading
import time
from types import TracebackType
from typing import Self

import msgspec

from benchmarks.floods.catalog import FLOODS, Flood
from benchmarks.floods.measured_user import FIRST_EVENT, HEALTH, STOP
from benchmarks.floods.server import (
    FLOOD_ADDRESS,
    USER_ADDRESS,
    FloodOrder,
    FloodProcess,
    FloodReport,
    FloodServer,
    UserOrder,
    UserProcess,
    UserReport,
)
from benchmarks.measurement import Log, quantile
from benchmarks.server_process import Server, cores, raise_fd_limit

MB = 1024 * 1024
MAX_STOP_MS = 1000
MAX_FIRST_EVENT_MS = 1000
MAX_HEALTH_MS = 200
"""Limits of the longest Stop, of 95 % of the first events, and of the longest `/health`."""
MAX_MEMORY_MB = 400
MAX_LEFT_MB = 50
"""Limits of the server's memory at any time, and of what is left of its growth after the flood."""
SETTLED_MB = 10
"""The memory has settled when at most this growth is left; then the measurement does not wait any longer."""
SETTLE_SECONDS = 10.0
SAMPLE_SECONDS = 0.02


class FloodPlan(msgspec.Struct, frozen=True, kw_only=True):
    """The floods to measure, and how long each of them lasts."""

    seconds: float = 4
    names: tuple[str, ...] = tuple(FLOODS)


QUICK_SECONDS = 2.0


class Memory(msgspec.Struct, frozen=True, kw_only=True):
    """The server's memory in MB before, during and after a flood."""

    before: float
    peak: float
    after: float


class FloodFigures(msgspec.Struct, frozen=True, kw_only=True):
    """What was measured during one flood: latencies of the user, responses, memory and CPU time."""

    flood: str
    has_key: bool
    user: UserReport
    client: FloodReport
    memory: Memory
    cpu: float
    """CPU time of the server as a part of the time of the flood."""
    waited: float
    """Part of the time of the flood for which the server's main thread waited for its core."""
    load: float
    """The load average of the machine after the flood."""
    has_survived: bool = True

    @property
    def title(self) -> str:
        return f"{self.flood} {'with' if self.has_key else 'without'} a key"

    def percentiles(self, what: str) -> tuple[float, float, float]:
        """Return the median, the 95th percentile and the maximum of a latency, in milliseconds."""
        values = self.user.latencies.get(what, [])
        if len(values) < 2:
            values = [*values, *values] or [float("inf")] * 2
        return quantile(values, 50), quantile(values, 95), max(values)

    def breaches(self, time_factor: float = 1) -> list[str]:
        """Return the limits that were exceeded. `time_factor` extends time limits on slow machines."""
        times = (
            ("Stop", self.percentiles(STOP)[2], MAX_STOP_MS),
            ("first event", self.percentiles(FIRST_EVENT)[1], MAX_FIRST_EVENT_MS),
            ("/health", self.percentiles(HEALTH)[2], MAX_HEALTH_MS),
        )
        found = [f"{what} {took:,.0f} ms" for what, took, limit in times if took > limit * time_factor]
        if self.memory.peak > MAX_MEMORY_MB:
            found.append(f"memory {self.memory.peak:.0f} MB")
        if (left := self.memory.after - self.memory.before) > MAX_LEFT_MB:
            found.append(f"{left:.0f} MB left")
        if self.user.failures:
            found.append(f"{len(self.user.failures)} requests failed")
        return found if self.has_survived else [*found, "the server ended"]


class FloodResults(msgspec.Struct, kw_only=True):
    """The figures of all floods that could be measured, and the errors of the others."""

    figures: list[FloodFigures] = []
    errors: list[str] = []

    def faults(self, time_factor: float = 1) -> list[str]:
        """Return the limits that were exceeded in each flood, and the errors."""
        over = [(found, found.breaches(time_factor)) for found in self.figures]
        return [*(f"{found.title}: {', '.join(breaches)}" for found, breaches in over if breaches), *self.errors]


class MemoryWatch:
    """Context manager: samples a server's memory and keeps the highest value, in bytes."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._watch)
        self.before = self.peak = server.rss()

    def _watch(self) -> None:
        while not self._is_over.wait(SAMPLE_SECONDS):
            self.peak = max(self.peak, self._server.rss())

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self._is_over.set()
        self._thread.join()


def measure_floods(plan: FloodPlan, log: Log) -> FloodResults:
    """Measure all floods of the plan. All processes are ended, also after an error."""
    raise_fd_limit()
    cases = [(FLOODS[name], has_key) for name in plan.names for has_key in FLOODS[name].variants()]
    results = FloodResults()
    with UserProcess(cores()[1]) as user, FloodProcess(cores()[1]) as client:
        for number, (flood, has_key) in enumerate(cases, 1):
            began = time.monotonic()
            try:
                found = measure_flood(flood, has_key, plan.seconds, user, client)
            except (RuntimeError, OSError) as error:  # the other floods can still be measured
                results.errors.append(f"{flood.name}: {error}")
                log(f"{number} of {len(cases)}: {results.errors[-1]}")
                continue
            except KeyboardInterrupt:
                results.errors.append(f"interrupted at {flood.name}: further floods were not measured")
                break
            results.figures.append(found)
            result = ", ".join(found.breaches()) or "within the limits"
            log(f"{number} of {len(cases)}, {time.monotonic() - began:.0f} s: {found.title}: {result}")
            for failure in found.user.failures[:3]:
                log(f"  {failure}")
    return results


def measure_flood(flood: Flood, has_key: bool, seconds: float, user: UserProcess, client: FloodProcess) -> FloodFigures:
    with FloodServer(cores()[0]) as server:
        order = FloodOrder(flood=flood.name, port=server.port, key=server.keys["ann"], has_key=has_key)
        stop_address = FLOOD_ADDRESS if flood.is_from_user_address else USER_ADDRESS
        ben = UserOrder(port=server.port, key=server.keys["ben"], seconds=seconds, stop_address=stop_address)
        user.measure(msgspec.structs.replace(ben, seconds=0))
        client.prepare(order)
        with MemoryWatch(server) as watch:
            began, cpu, waited = time.monotonic(), server.cpu(), server.waited()
            client.begin()
            report = user.measure(ben)
            duration = time.monotonic() - began
            cpu, waited = server.cpu() - cpu, server.waited() - waited
        load = os.getloadavg()[0]
        answers = client.end()
        after = _settled(server, watch.before)
        memory = Memory(before=watch.before / MB, peak=max(watch.peak, after) / MB, after=after / MB)
        return FloodFigures(
            flood=flood.name,
            has_key=has_key,
            user=report,
            client=answers,
            memory=memory,
            cpu=cpu / duration,
            waited=waited / duration,
            load=load,
            has_survived=server.is_alive,
        )


def _settled(server: Server, before: int) -> int:
    """Wait until the server's memory has settled after a flood, or SETTLE_SECONDS have passed, and return it."""
    deadline = time.monotonic() + SETTLE_SECONDS
    while (after := server.rss()) > before + SETTLED_MB * MB and time.monotonic() < deadline:
        time.sleep(0.1)
    return after
