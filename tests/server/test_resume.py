"""Resume is exact: for every cut point of a run of 500 events, in every format that there is."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from limelight import registry
from limelight.events import AnyEvent
from tests.faults.cast import work
from tests.faults.process import joined
from tests.serving import collect, serving


@pytest.mark.parametrize("format_", sorted(registry.find("dialects")))
async def test_every_cut_point(tmp_path: Path, format_: str) -> None:
    async def long(messages: object, ctx: object) -> AsyncIterator[str | AnyEvent]:
        async for item in work(400, 0):
            yield item
        raise RuntimeError("so that the last Record has two frames in some formats")

    async with serving(long, data=tmp_path) as served:
        live = [(f.id, f.data) for f in await collect(served.ask("go", session_id="s", format=format_))]
        session = (await served.http.get("/sessions/s")).json()
        assert session["last_seq"] >= 500
        for cut in range(1, len(live)):
            rest = served.stream(
                "GET", f"/runs/{session['run_id']}/stream", params={"format": format_, "after": live[cut - 1][0]}
            )
            resumed = live[:cut] + [(f.id, f.data) for f in await collect(rest)]
            assert joined(resumed) == joined(live), f"cut behind {live[cut - 1][0]}"
