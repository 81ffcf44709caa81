"""The base class of each framework's scenario tests, which have a source and a Case for each scenario.

class TestMine(SourceSuite):
    source = MySource
    cases = {"text": Case(make_agent, SCRIPT), …}
"""

import os
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, ClassVar

import msgspec
import pytest

from limelight.deltas import join
from limelight.events import AnyEvent, ReasoningDelta, TextDelta
from limelight.sources.base import Source
from tests.sources.conformance import SCENARIOS, Case
from tests.sources.live_turn import FinishedRun, ModelEndpoint, run_agent

GOLDEN = Path(__file__).parent / "golden"


class SourceSuite:
    source: ClassVar[type[Source]]
    cases: ClassVar[Mapping[str, Case]]

    def maker(self, case: Case) -> Callable[[ModelEndpoint], object]:
        """Return what makes the agent of a case. A framework may keep the agent for `check`."""
        return case.make

    async def check(self, make: Callable[[ModelEndpoint], object], run: FinishedRun) -> None:
        """Compare a finished run with what the framework itself has ended with."""

    @pytest.mark.parametrize("name", SCENARIOS)
    async def test_scenario(self, name: str, tmp_path: Path) -> None:
        scenario, case = SCENARIOS[name], self.cases.get(name)
        lacks = scenario.feature is not None and scenario.feature in self.source.LACKS
        assert case is not None or lacks, f"{self.source.framework} has no case for {name}, and does not say why"
        if case is None:
            return
        make = self.maker(case)
        run = await run_agent(make, case.script, tmp_path, decide=scenario.decide, stop_at=scenario.stop_at)
        await self.check(make, run)
        if lacks:
            with pytest.raises(AssertionError):
                scenario.expect(run)
                pytest.fail(f"{self.source.framework} says that it lacks {scenario.feature}, but it does not")
            return
        scenario.expect(run)
        if scenario.golden:
            golden(self.source.framework, name, run)

    def test_every_case_belongs_to_a_scenario(self) -> None:
        assert set(self.cases) <= set(SCENARIOS)


def golden(framework: str, name: str, run: FinishedRun) -> None:
    """Compare with the golden transcript; `make golden` writes it."""
    path = GOLDEN / framework / f"{name}.jsonl"
    lines = transcript(run)
    if os.environ.get("LIMELIGHT_GOLDEN") == "write":
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(lines, encoding="utf-8")
    assert path.exists(), f"there is no {path.name} for {framework} yet: make golden, then look at it"
    assert lines == path.read_text(encoding="utf-8")


def transcript(run: FinishedRun) -> str:
    """The events as lines of JSON, without what differs between runs and versions: times, ids, numbers of tokens, and
    how many pieces a text or thought came in, which is as many as there was time to commit."""
    names: dict[str, str] = {}

    def renamed(key: str, value: Any) -> Any:
        if not value or not isinstance(value, str):
            return value
        return names.setdefault(value, f"{key}-{len([n for n in names.values() if n.startswith(key)]) + 1}")

    lines: list[str] = []
    for event in _joined_events(run):
        fields: dict[str, Any] = msgspec.to_builtins(event)
        for key in ("call_id", "approval_id", "artifact_id"):
            if key in fields:
                fields[key] = renamed(key.removesuffix("_id"), fields[key])
        for key in ("duration_ms", "error_id", "expires_at", "result_url", "input_tokens", "output_tokens"):
            if key in fields:
                fields[key] = "…"
        lines.append(re.sub(r"127\.0\.0\.1:\d+", "127.0.0.1:PORT", msgspec.json.encode(fields).decode()))
    return "\n".join(lines) + "\n"


def _joined_events(run: FinishedRun) -> Iterator[AnyEvent]:
    for joined in join(run.records):
        is_speech = isinstance(joined.record.event, TextDelta | ReasoningDelta)
        yield from [joined.record.event] if is_speech else (part.event for part in joined.parts)
