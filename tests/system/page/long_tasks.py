"""Tasks of the page's main thread, measured by CPU time, so that other programs have no effect."""

from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any, cast

from benchmarks.page.browser import Tab
from tests.support.wait import DEADLINE

CATEGORIES = "toplevel,__metadata"
TASK = "RunTask"
MAIN = "CrRendererMain"


class Tasks(list[float]):
    """Milliseconds of CPU time of each task; empty until the block that traces them ends."""

    @property
    def longest(self) -> float:
        return max(self)


@contextmanager
def watched_tasks(tab: Tab) -> Generator[Tasks]:
    """Trace the page during the block."""
    devtools = tab.page.context.new_cdp_session(tab.page)
    send = cast("Callable[..., Any]", devtools.send)  # pyright: ignore[reportUnknownMemberType]
    events: list[dict[str, Any]] = []
    done: list[bool] = []

    def collect(message: dict[str, Any]) -> None:
        events.extend(message["value"])

    def end(_: object) -> None:
        done.append(True)

    devtools.on("Tracing.dataCollected", collect)
    devtools.on("Tracing.tracingComplete", end)
    send("Tracing.start", {"traceConfig": {"includedCategories": CATEGORIES.split(",")}})
    tasks = Tasks()
    yield tasks
    send("Tracing.end")
    for _ in range(DEADLINE * 20):
        if done:
            break
        tab.page.wait_for_timeout(50)
    assert done, "the trace never came"
    mains = {(e["pid"], e["tid"]) for e in events if e["name"] == "thread_name" and e["args"]["name"] == MAIN}
    tasks += [e["tdur"] / 1000 for e in events if (e["pid"], e["tid"]) in mains and TASK in e["name"] and "tdur" in e]
