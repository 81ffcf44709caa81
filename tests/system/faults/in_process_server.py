"""A server in the event loop of the test, whose tasks and threads can be inspected: for agents that misbehave."""

import asyncio
import threading
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

import psutil

from limelight import plugins
from tests.support import agents
from tests.support.server import Frame, Served, asking, collect, serving
from tests.support.wait import eventually
from tests.system.faults.invariants import ENDS, MB, READER

FORMATS = tuple(plugins.find("dialects"))
MEMORY = 150 * MB
"""How much the process may grow. It includes the client, which reads everything in every format."""
POOLS = ("limelight-work", "limelight-sqlite")
"""Pools whose threads stay idle for the next work; they do not count as left over."""


class Inside(NamedTuple):
    """Resources of this process."""

    tasks: set["asyncio.Task[Any]"]
    threads: set[threading.Thread]
    files: int
    """Without sockets, because the client in this process keeps some."""
    rss: int


def inside() -> Inside:
    threads = {thread for thread in threading.enumerate() if not thread.name.startswith(POOLS)}
    return Inside(asyncio.all_tasks(), threads, _open_files(), psutil.Process().memory_info().rss)


def _open_files() -> int:
    found = 0
    for descriptor in Path("/proc/self/fd").iterdir():
        with suppress(OSError):  # the descriptor of the listing itself is closed
            found += not str(descriptor.readlink()).startswith("socket:")
    return found


@asynccontextmanager
async def misbehaving(*targets: Callable[..., Any], data: Path, **settings: Any) -> AsyncGenerator[Served]:
    """A warm server with these agents and a regular one. At the end it must have released their resources."""
    async with serving(*targets, agents.talker, data=data, **settings) as served:
        await others_are_well(served)
        before = inside()
        yield served
        await others_are_well(served)
        await nothing_is_left(served, before)


async def others_are_well(served: Served) -> None:
    other = await served.http.post("/chat", json=asking("hi", agent="talker"))
    assert other.json()["message"]["content"] == "".join(agents.WORDS)


async def nothing_is_left(served: Served, before: Inside) -> None:
    """Check that every run has one terminal event, is readable in every format, and left no task, thread or file."""
    await eventually(lambda: served.runtime.sessions.count == 0 and served.runtime.hub.viewers == 0)
    for session in (await served.http.get("/sessions?limit=200")).json()["sessions"]:
        for format_ in FORMATS:
            found = await collect(served.stream("GET", f"/runs/{session['run_id']}/stream?format={format_}&after=0"))
            if format_ == "records":
                kinds = [frame.data["event"]["kind"] for frame in found]
                assert [kind in ENDS for kind in kinds] == [False] * (len(kinds) - 1) + [True]
    try:
        await eventually(lambda: not _new(before))
    except AssertionError:
        raise AssertionError(f"left: {_new(before)}") from None
    grown = inside().rss - before.rss
    assert grown < MEMORY, f"{grown / MB:.0f} MB more than before"


def _new(before: Inside) -> list[object]:
    """New resources, without connections that the client keeps."""
    now = inside()
    tasks = [task for task in now.tasks - before.tasks if "RequestResponseCycle" not in repr(task)]
    files = max(0, now.files - before.files - READER.files)
    return [*tasks, *(now.threads - before.threads), *["an open file"] * files]


def ending(found: list[Frame]) -> tuple[str, str]:
    """How a run ended, as its viewers see it: the type of the frame and the code."""
    assert found[-1].type == "done"
    last = found[-2]
    return (last.type, last.data["data"].get("code", "")) if last.type in ("error", "cancelled") else ("", "")
