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
        cursors = [*map(str, range(1, session["last_seq"])), *(id_ for id_, _ in live if "." in id_)]
        for cursor in cursors:
            rest = served.stream(
                "GET", f"/runs/{session['run_id']}/stream", params={"format": format_, "after": cursor}
            )
            before = [frame for frame in live if place(frame[0]) <= place(cursor)]
            resumed = before + [(f.id, f.data) for f in await collect(rest)]
            assert joined(format_, resumed) == joined(format_, live), f"cut behind {cursor}"


def place(cursor: str) -> tuple[int, float]:
    """Cursors in their order: `57.1` comes before `57`, which is the whole Record."""
    seq, _, k = cursor.partition(".")
    return int(seq), int(k) if k else float("inf")
