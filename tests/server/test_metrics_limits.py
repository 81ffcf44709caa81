"""Whoever meets a limit is counted once, wherever they are told."""

from collections import Counter
from pathlib import Path

import pytest

from limelight.auth.key_file import NAME as KEYS_FILE
from limelight.auth.key_file import Keyring
from limelight.errors import all_errors
from tests.server.keyed_server import House
from tests.server.limit_cases import CASES, FILLER, Case, silent
from tests.server.prometheus import Meter
from tests.support import agents
from tests.support.server import offer, serving


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.code}-{case.meet.__name__}")
async def test_a_limit(tmp_path: Path, case: Case) -> None:
    served_agents = [offer(FILLER.run, "filler")]
    settings = {f"limits__{name}": value for name, value in case.settings.items()}
    async with serving(agents.echo, agents.patient, silent, data=tmp_path, agents=served_agents, **settings) as served:
        house = House(served, Keyring(tmp_path), tmp_path / KEYS_FILE)
        ann, meter = house.headers("ann"), Meter(served, house.headers("root", "admin"))
        meeting = case.meet(house, ann)
        assert await anext(meeting) == []
        await meter.read()
        told = await anext(meeting)
        assert case.code in told
        assert await meter.changed("limelight_limit_hits_total") == {
            f"limelight_limit_hits_total{{code={code}}}": count for code, count in Counter(told).items()
        }
        async for _ in meeting:
            raise AssertionError("it has met its limit")


def test_there_is_a_case_for_each_limit() -> None:
    assert {case.code for case in CASES} == {error.code for error in all_errors() if error.is_limit}
