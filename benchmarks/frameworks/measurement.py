"""CPU time per token: of each framework alone, of Limelight's source for it, and through Limelight.

Each is measured many times, with a short and a long reply, and the lowest figure counts. That is valid on a
shared machine: disturbances (cold caches, interrupts, time that the host gives to another guest) make a run more
expensive, and nothing makes it cheaper than it is without them. So the lowest of many figures is the nearest to the
real cost, while a median includes disturbances. Replies are short, so that some of them are not disturbed. The
difference between the two lengths is the cost of tokens; the rest is the cost of a run.
"""

import http.client
import os
import time
from contextlib import ExitStack
from typing import NamedTuple

import msgspec

from benchmarks.load_process import Client, Job
from benchmarks.measurement import Log, job_cpu
from benchmarks.server_process import ModuleServer, cores

REPLY = 2000
"""The reply length in tokens for which the total cost per token is computed, including the cost of the run."""
PARTS = 4
"""Number of parts into which the rounds are divided. The spread of their figures shows how reliable these are."""


class FrameworksPlan(msgspec.Struct, frozen=True, kw_only=True):
    """Number of rounds and lengths of the replies with which the frameworks are measured."""

    rounds: int = 40
    short: int = 100
    long: int = 600
    """Length in tokens of the short and of the long reply."""


QUICK = FrameworksPlan(rounds=8)


class Baseline(NamedTuple):
    """A way to use a framework without Limelight, with which Limelight is compared."""

    framework: str
    way: str = ""
    label: str = ""

    @property
    def name(self) -> str:
        return f"{self.framework}, {self.label}" if self.label else self.framework


BASELINES = (
    Baseline("langgraph"),
    Baseline("deepagents"),
    Baseline("agno"),
    Baseline("smolagents"),
    Baseline("smolagents", "model", "against its model alone"),
)


class Cost(NamedTuple):
    """Microseconds of CPU per token and per run."""

    token: float
    run: float

    @property
    def total(self) -> float:
        """The total microseconds per token of a reply of REPLY tokens, including the cost of the run."""
        return self.token + self.run / REPLY

    def minus(self, other: "Cost") -> "Cost":
        return Cost(self.token - other.token, self.run - other.run)


class Samples(msgspec.Struct):
    """Microseconds of CPU for a complete reply, one sample per round."""

    short: list[float] = []
    long: list[float] = []

    def cost(self, plan: FrameworksPlan, part: int | None = None) -> Cost:
        """Return the cost computed from the lowest samples of all rounds, or of one part of the rounds."""
        rounds = slice(None) if part is None else slice(part, None, PARTS)
        short, long = min(self.short[rounds]), min(self.long[rounds])
        token = (long - short) / (plan.long - plan.short)
        return Cost(token, short - token * plan.short)


class FrameworkSamples(msgspec.Struct):
    """The samples of one baseline, and those of Limelight for the same framework."""

    alone: Samples = msgspec.field(default_factory=Samples)
    source: Samples = msgspec.field(default_factory=Samples)
    limelight: Samples = msgspec.field(default_factory=Samples)

    def added(self, plan: FrameworksPlan, part: int | None = None) -> Cost:
        """Return the cost that Limelight adds to that of the framework."""
        return self.limelight.cost(plan, part).minus(self.alone.cost(plan, part))

    def added_by_parts(self, plan: FrameworksPlan) -> list[float]:
        """Return the total that Limelight adds per token, once for each part of the rounds. It shows the variation."""
        return [self.added(plan, part).total for part in range(min(PARTS, plan.rounds))]

    def added_by_source(self, plan: FrameworksPlan) -> Cost:
        """Return the part of the added cost that Limelight's source causes, which reads the framework's stream."""
        return self.source.cost(plan).minus(self.alone.cost(plan))


class FrameworkFigures(msgspec.Struct):
    """The samples of all frameworks, and the load of the machine before the first round."""

    samples: dict[Baseline, FrameworkSamples]
    load: float


class ModelServer(ModuleServer):
    """The process of the canned model."""

    def __init__(self, core: int | None = None) -> None:
        super().__init__("model", "benchmarks.frameworks.canned_model", core=core)

    def set_length(self, tokens: int) -> None:
        """Set the number of tokens of later replies."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port)
        connection.request("POST", f"/length/{tokens}")
        connection.getresponse()
        connection.close()


class AgentsServer(ModuleServer):
    """The process that runs the agents, with and without Limelight."""

    def __init__(self, model: ModelServer, core: int | None = None) -> None:
        url = f"http://127.0.0.1:{model.port}"
        super().__init__("agents", "benchmarks.frameworks.server", url, core=core)


class FrameworkBenchmark:
    """Measures each framework, with and without Limelight, one round at a time."""

    def __init__(self, plan: FrameworksPlan, client: Client, model: ModelServer, agents: AgentsServer) -> None:
        self._plan = plan
        self._client = client
        self._model = model
        self._agents = agents

    def measure_round(self, number: int, baseline: Baseline, samples: FrameworkSamples) -> None:
        """Take one sample of each kind and length. The order alternates, so that drift affects all kinds."""
        paths = {
            f"/alone/{baseline.framework}?way={baseline.way}": samples.alone,
            f"/source/{baseline.framework}": samples.source,
            "/chat/stream": samples.limelight,
        }
        ordered = list(paths.items()) if number % 2 else list(reversed(paths.items()))
        for tokens in (self._plan.short, self._plan.long):
            self._model.set_length(tokens)
            for path, kind in ordered:
                cpus = kind.short if tokens == self._plan.short else kind.long
                cpus.append(self._cpu(baseline, path, tokens))

    def _cpu(self, baseline: Baseline, path: str, tokens: int) -> float:
        job = Job(kind="reply", port=self._agents.port, path=path, mode=baseline.framework, tokens=tokens)
        return job_cpu(self._agents, self._client, job)[0] * 1e6


def measure_frameworks(plan: FrameworksPlan, log: Log) -> FrameworkFigures:
    """Measure all frameworks, with and without Limelight, after a warm-up round that is not counted."""
    agents_core, other_core = cores()
    figures = FrameworkFigures({baseline: FrameworkSamples() for baseline in BASELINES}, os.getloadavg()[0])
    with ExitStack() as stack:
        client = stack.enter_context(Client(other_core))
        model = stack.enter_context(ModelServer(other_core))
        agents = stack.enter_context(AgentsServer(model, agents_core))
        benchmark = FrameworkBenchmark(plan, client, model, agents)
        for baseline in BASELINES:
            benchmark.measure_round(0, baseline, FrameworkSamples())
        for number in range(plan.rounds):
            began = time.monotonic()
            for baseline in BASELINES:
                benchmark.measure_round(number, baseline, figures.samples[baseline])
            log(f"frameworks, round {number + 1} of {plan.rounds}: {time.monotonic() - began:.0f} s")
    return figures
