"""Resume is exact at every cursor of a run of 500 events, in every format."""

from collections.abc import AsyncIterator
from pathlib import Path

import msgspec
import pytest

from limelight import plugins
from limelight.events import AnyEvent
from limelight.models import LOCAL_OWNER, SessionRef
from tests.dialects.transcripts import live
from tests.support.server import collect, serving
from tests.system.processes.agents import work
from tests.system.processes.server_process import joined


@pytest.mark.requirement("log-in-every-format", "resume-exact")
@pytest.mark.parametrize("format_", sorted(plugins.find("dialects")))
async def test_resume_at_every_cursor_is_exact(tmp_path: Path, format_: str) -> None:
    async def long(messages: object, ctx: object) -> AsyncIterator[str | AnyEvent]:
        async for item in work(340, 0):
            yield item
        raise RuntimeError("gives the last Record two frames in some formats")

    async with serving(long, data=tmp_path) as served:
        seen = [(f.id, f.data) for f in await collect(served.ask("go", session_id="s", format=format_))]
        session = (await served.http.get("/sessions/s")).json()
        assert session["last_seq"] >= 500
        # A slow reader gets joined deltas and cannot stop inside of one: the cursors are those of the fastest reader.
        records = await served.runtime.store.records(SessionRef(LOCAL_OWNER, "s"), after=0, limit=10_000)
        fastest = live(served.runtime.format(format_).make_dialect, records)
        whole = [(frame.id, msgspec.json.decode(frame.data)) for frame in fastest]
        expected = joined(format_, whole)
        assert joined(format_, seen) == expected
        cursors = [*map(str, range(1, session["last_seq"])), *(id_ for id_, _ in whole if "." in id_)]
        for cursor in cursors:
            rest = served.stream(
                "GET", f"/runs/{session['run_id']}/stream", params={"format": format_, "after": cursor}
            )
            before = [frame for frame in whole if place(frame[0]) <= place(cursor)]
            resumed = before + [(f.id, f.data) for f in await collect(rest)]
            assert joined(format_, resumed) == expected, f"cut behind {cursor}"


def place(cursor: str) -> tuple[int, float]:
    """A sort key of cursors: `57.1` comes before `57`, which is the complete Record."""
    seq, _, k = cursor.partition(".")
    return int(seq), int(k) if k else float("inf")
