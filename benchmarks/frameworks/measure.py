"""What is measured: CPU per token, of each framework alone, of its source, and through Limelight, taking turns."""

import os
import statistics
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack
from typing import NamedTuple

import msgspec

from benchmarks.client import Client, Job
from benchmarks.server import Server, cores

TOKENS = 2000


class FrameworksPlan(msgspec.Struct, frozen=True, kw_only=True):
    """How much is done."""

    rounds: int = 8
    tokens: int = TOKENS


QUICK = FrameworksPlan(rounds=2)


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


class Costs(msgspec.Struct):
    """Microseconds of CPU per token, one figure per round."""

    alone: list[float] = []
    source: list[float] = []
    limelight: list[float] = []

    @property
    def added(self) -> list[float]:
        """What Limelight adds, round by round."""
        return [whole - alone for whole, alone in zip(self.limelight, self.alone, strict=True)]

    @property
    def added_by_source(self) -> list[float]:
        """How much of that its source adds."""
        return [source - alone for source, alone in zip(self.source, self.alone, strict=True)]


class FrameworkFigures(msgspec.Struct):
    """All figures, and how busy the machine was before there were any, with the benchmarks before this one included."""

    costs: dict[Base, Costs]
    load: float


class Model(Server):
    """The canned model, as a process."""

    def __init__(self, core: int | None, tokens: int) -> None:
        super().__init__("model", core, tokens)

    def _command(self) -> list[str]:
        return [sys.executable, "-m", "benchmarks.frameworks.model", str(self.port)]


class Stage(Server):
    """The process that runs the agents, with and without Limelight."""

    def __init__(self, core: int | None, model: Model) -> None:
        super().__init__("stage", core)
        self._model_url = f"http://127.0.0.1:{model.port}"

    def _command(self) -> list[str]:
        return [sys.executable, "-m", "benchmarks.frameworks.stage", str(self.port), self._model_url]


class Frameworks:
    """The cells. `cpu` asks once in a way and says what that cost per token, in microseconds."""

    def __init__(self, plan: FrameworksPlan, client: Client, stage: Stage) -> None:
        self._plan = plan
        self._client = client
        self._stage = stage

    def alone(self, base: Base) -> float:
        return self._cpu(base, f"/alone/{base.framework}?way={base.way}")

    def source(self, base: Base) -> float:
        return self._cpu(base, f"/source/{base.framework}")

    def limelight(self, base: Base) -> float:
        return self._cpu(base, "/chat/stream")

    def round(self, base: Base, costs: Costs) -> None:
        """There and back, with `alone` beside both others, so that a drift hits all alike."""
        cells = (self.source, self.alone, self.limelight)
        there, back = [cell(base) for cell in cells], [cell(base) for cell in reversed(cells)]
        for figures, *both in zip((costs.source, costs.alone, costs.limelight), there, reversed(back), strict=True):
            figures.append(statistics.mean(both))

    def _cpu(self, base: Base, path: str) -> float:
        before = self._stage.cpu()
        tokens = self._plan.tokens
        self._client.do(Job(kind="reply", port=self._stage.port, path=path, mode=base.framework, tokens=tokens))
        return (self._stage.cpu() - before) / tokens * 1e6


def measure_frameworks(plan: FrameworksPlan, say: Callable[[str], None]) -> FrameworkFigures:
    """Everything, the first round of each not counted."""
    stage_core, other_core = cores()
    figures = FrameworkFigures({base: Costs() for base in BASES}, os.getloadavg()[0])
    with ExitStack() as stack:
        client = stack.enter_context(Client(other_core))
        model = stack.enter_context(Model(other_core, plan.tokens))
        stage = stack.enter_context(Stage(stage_core, model))
        frameworks = Frameworks(plan, client, stage)
        for base in BASES:
            frameworks.round(base, Costs())
        for number in range(plan.rounds):
            began = time.monotonic()
            for base in BASES:
                frameworks.round(base, figures.costs[base])
            say(f"frameworks, round {number + 1} of {plan.rounds}: {time.monotonic() - began:.0f} s")
    return figures
