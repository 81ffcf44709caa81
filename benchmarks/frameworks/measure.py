"""What is measured: CPU per token, of each framework alone, of its source, and through Limelight, taking turns.

Every cell is measured many times, with a short reply and with a long one, and the lowest figure of each counts. That
is sound on a machine that others use too: whatever disturbs a run (caches that somebody else has filled, interrupts, a
processor that is lent to another guest) costs it time, and nothing makes it cheaper than it is undisturbed. So the
lowest of many is the nearest to what the work itself costs, for all contenders alike, while a median has whatever
happened around it in it. Replies are short enough for some of them to be left in peace. The difference between the two
lengths is what tokens cost; what is left is the run's own.
"""

import http.client
import os
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack
from typing import NamedTuple

import msgspec

from benchmarks.client import Client, Job
from benchmarks.server import Server, cores

REPLY = 2000
"""Tokens over which the run's own cost is spread where one figure is to tell everything."""
PARTS = 4
"""Into so many the rounds are dealt out to see by how much their figures differ."""


class FrameworksPlan(msgspec.Struct, frozen=True, kw_only=True):
    """How much is done."""

    rounds: int = 40
    short: int = 100
    long: int = 600
    """Tokens of the two replies."""


QUICK = FrameworksPlan(rounds=8)


class Base(NamedTuple):
    """What Limelight is compared with: a framework, used alone in one of its ways."""

    framework: str
    way: str = ""
    what: str = ""

    @property
    def name(self) -> str:
        return f"{self.framework}, {self.what}" if self.what else self.framework


BASES = (
    Base("langgraph"),
    Base("deepagents"),
    Base("agno"),
    Base("smolagents"),
    Base("smolagents", "model", "against its model alone"),
)


class Spent(NamedTuple):
    """Microseconds of CPU: for each token, and once for each run."""

    token: float
    run: float

    @property
    def in_all(self) -> float:
        """For each token of a reply, the run's own included."""
        return self.token + self.run / REPLY

    def more_than(self, other: "Spent") -> "Spent":
        return Spent(self.token - other.token, self.run - other.run)


class Cell(msgspec.Struct):
    """Microseconds of CPU for a whole reply, one figure per round."""

    short: list[float] = []
    long: list[float] = []

    def spent(self, plan: FrameworksPlan, part: int | None = None) -> Spent:
        """By the lowest figures of all rounds, or of one part of them."""
        rounds = slice(None) if part is None else slice(part, None, PARTS)
        short, long = min(self.short[rounds]), min(self.long[rounds])
        token = (long - short) / (plan.long - plan.short)
        return Spent(token, short - token * plan.short)


class Costs(msgspec.Struct):
    """The cells of one base."""

    alone: Cell = msgspec.field(default_factory=Cell)
    source: Cell = msgspec.field(default_factory=Cell)
    limelight: Cell = msgspec.field(default_factory=Cell)

    def added(self, plan: FrameworksPlan, part: int | None = None) -> Spent:
        """What Limelight adds."""
        return self.limelight.spent(plan, part).more_than(self.alone.spent(plan, part))

    def added_by_parts(self, plan: FrameworksPlan) -> list[float]:
        """What Limelight adds to a token in all, as each part of the rounds alone would have it."""
        return [self.added(plan, part).in_all for part in range(min(PARTS, plan.rounds))]

    def added_by_source(self, plan: FrameworksPlan) -> Spent:
        """How much of that its source adds."""
        return self.source.spent(plan).more_than(self.alone.spent(plan))


class FrameworkFigures(msgspec.Struct):
    """All figures, and how busy the machine was before there were any, with the benchmarks before this one included."""

    costs: dict[Base, Costs]
    load: float


class Model(Server):
    """The canned model, as a process."""

    def __init__(self, core: int | None) -> None:
        super().__init__("model", core)

    def _command(self) -> list[str]:
        return [sys.executable, "-m", "benchmarks.frameworks.model", str(self.port)]

    def replies_with(self, tokens: int) -> None:
        """So long are replies from now on."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port)
        connection.request("POST", f"/length/{tokens}")
        connection.getresponse()
        connection.close()


class Stage(Server):
    """The process that runs the agents, with and without Limelight."""

    def __init__(self, core: int | None, model: Model) -> None:
        super().__init__("stage", core)
        self._model_url = f"http://127.0.0.1:{model.port}"

    def _command(self) -> list[str]:
        return [sys.executable, "-m", "benchmarks.frameworks.server", str(self.port), self._model_url]


class Frameworks:
    """A round of measuring."""

    def __init__(self, plan: FrameworksPlan, client: Client, model: Model, stage: Stage) -> None:
        self._plan = plan
        self._client = client
        self._model = model
        self._stage = stage

    def round(self, number: int, base: Base, costs: Costs) -> None:
        """Every cell once with each length, in turned order every other round, so that a drift hits all alike."""
        paths = {
            f"/alone/{base.framework}?way={base.way}": costs.alone,
            f"/source/{base.framework}": costs.source,
            "/chat/stream": costs.limelight,
        }
        cells = list(paths.items()) if number % 2 else list(reversed(paths.items()))
        for tokens in (self._plan.short, self._plan.long):
            self._model.replies_with(tokens)
            for path, cell in cells:
                figures = cell.short if tokens == self._plan.short else cell.long
                figures.append(self._cpu(base, path, tokens))

    def _cpu(self, base: Base, path: str, tokens: int) -> float:
        before = self._stage.cpu()
        self._client.do(Job(kind="reply", port=self._stage.port, path=path, mode=base.framework, tokens=tokens))
        return (self._stage.cpu() - before) * 1e6


def measure_frameworks(plan: FrameworksPlan, say: Callable[[str], None]) -> FrameworkFigures:
    """Everything, the first rounds of each not counted."""
    stage_core, other_core = cores()
    figures = FrameworkFigures({base: Costs() for base in BASES}, os.getloadavg()[0])
    with ExitStack() as stack:
        client = stack.enter_context(Client(other_core))
        model = stack.enter_context(Model(other_core))
        stage = stack.enter_context(Stage(stage_core, model))
        frameworks = Frameworks(plan, client, model, stage)
        for base in BASES:
            frameworks.round(0, base, Costs())
        for number in range(plan.rounds):
            began = time.monotonic()
            for base in BASES:
                frameworks.round(number, base, figures.costs[base])
            say(f"frameworks, round {number + 1} of {plan.rounds}: {time.monotonic() - began:.0f} s")
    return figures
