"""What is measured in the page: opening and scrolling long sessions, typing while it streams, long answers, memory."""

import os
import statistics
import time
from collections.abc import Callable

import msgspec

from benchmarks.page.agents import RATE
from benchmarks.page.browser import SLOW, NewTab, Tab, chromium, tabs
from benchmarks.page.initial_load import first_load
from benchmarks.page.server import Stage, build

SOON = 5
"""Seconds that a stream goes on before and after it is measured."""
PAUSE = 0.08
"""Seconds between two keys."""
SCROLLS = 150
SCROLL_PAUSE_MS = 16


class PagePlan(msgspec.Struct, frozen=True, kw_only=True):
    """How much is done."""

    messages: int = 20_000
    opens: int = 5
    seconds: float = 60
    """Of typing while it streams."""
    tokens: int = 3_000


QUICK = PagePlan(opens=2, seconds=15)


class PageFigures(msgspec.Struct, kw_only=True):
    """Times in ms, sizes in bytes."""

    load: float
    """Of the machine, before."""
    script: int
    open_run: list[float]
    """A session that is one run."""
    open_runs: list[float]
    """One of many runs."""
    open_heap: float
    nodes: int
    """The most elements that the page had with a long session."""
    wheel: list[float]
    """Frames while the wheel turns."""
    drag: list[float]
    """Frames while the bar is dragged over all of it."""
    keys: list[float]
    """Typing while a text streams in."""
    keys_long: list[float]
    """The same behind a long session."""
    answer_tasks: list[float]
    """Long ones only, while a markdown answer streams in."""
    stream_heap: float
    """What the heap grew by in the time of `keys`."""
    stream_text: float
    """The text that came in that time."""


def measure_page(plan: PagePlan, say: Callable[[str], None]) -> PageFigures | None:
    """None without a Chromium."""
    executable = chromium()
    if executable is None:
        say("page: not measured, because there is no chromium in the PATH (apt-get install chromium)")
        return None
    folder = build(say)
    load = os.getloadavg()[0]
    with Stage() as stage, tabs(executable) as new_tab:
        say(f"page: two sessions of {plan.messages:,} messages are made")
        sessions = stage.one_run(plan.messages), stage.many_runs(plan.messages)
        say("page: opening and scrolling")
        open_run, open_runs = ([_opened(new_tab, url) for _ in range(plan.opens)] for url in sessions)
        with new_tab(sessions[0]) as tab:
            tab.loaded()
            heap = tab.heap()
            tab.page.click(".steps-head")
            tab.page.wait_for_timeout(1000)
            nodes = tab.nodes()
            tab.count_frames()
            wheel, drag = _wheel(tab), _drag(tab)
        say(f"page: typing while {RATE} tokens a second come, {plan.seconds:.0f} s twice")
        with new_tab(stage.begin("talker", f"{plan.seconds + 2 * SOON}")) as tab:
            tab.loaded()
            before = tab.heap()
            keys = _type(tab, plan.seconds)
            grown = tab.heap() - before
        with new_tab(stage.begin("talker", f"{plan.seconds + 2 * SOON} {plan.messages}")) as tab:
            tab.page.wait_for_selector(".alive .alive-doing:text('Writing')", timeout=120_000)
            tab.page.wait_for_timeout(1000)
            nodes = max(nodes, tab.nodes())
            keys_long = _type(tab, plan.seconds)
        say(f"page: an answer of {plan.tokens:,} tokens")
        with new_tab(address := stage.begin("writer", "1")) as tab:
            tab.loaded()
            tab.page.wait_for_timeout(SOON * 1000)  # a page that has just been opened has other things to do
            tab.forget()
            stage.begin("writer", str(plan.tokens), address)
            tab.page.wait_for_selector(".alive")
            tab.page.wait_for_selector(".alive", state="detached", timeout=(plan.tokens / RATE + 60) * 1000)
            tasks = tab.seen("tasks")
    return PageFigures(
        load=load,
        script=first_load(folder),
        open_run=open_run,
        open_runs=open_runs,
        open_heap=heap,
        nodes=nodes,
        wheel=wheel,
        drag=drag,
        keys=keys,
        keys_long=keys_long,
        answer_tasks=tasks,
        stream_heap=grown,
        stream_text=plan.seconds * RATE * 6,
    )


def _opened(new_tab: NewTab, url: str) -> float:
    with new_tab(url) as tab:
        return tab.loaded()


def _wheel(tab: Tab) -> list[float]:
    box = tab.page.locator(".chat-scroll")
    box.evaluate("(box) => { box.scrollTop = box.scrollHeight / 3 }")
    box.hover()
    tab.page.wait_for_timeout(500)
    tab.forget()
    for number in range(SCROLLS):
        tab.page.mouse.wheel(0, -300 if number % 50 > 40 else 300)
        tab.page.wait_for_timeout(SCROLL_PAUSE_MS)
    if not 0.2 < box.evaluate("(box) => box.scrollTop / box.scrollHeight") < 0.8:
        raise RuntimeError("the wheel was turned at an end of the session, where nothing moves")
    return tab.seen("frames")


def _drag(tab: Tab) -> list[float]:
    """As the bar does it: far jumps, one after the other."""
    box = tab.page.locator(".chat-scroll")
    tab.forget()
    for number in range(SCROLLS):
        box.evaluate("(box, part) => { box.scrollTop = part * box.scrollHeight }", number / SCROLLS)
        tab.page.wait_for_timeout(SCROLL_PAUSE_MS)
    return tab.seen("frames")


def _type(tab: Tab, seconds: float) -> list[float]:
    """The browser's own time from a key to the next frame; keys of which it does not tell were faster than it tells."""
    tab.page.click(".composer textarea")
    tab.page.wait_for_timeout(500)
    tab.forget()
    pressed = 0
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        tab.page.keyboard.press("a" if pressed % 2 == 0 else "Backspace")
        pressed += 1
        time.sleep(PAUSE)
    told = tab.seen("keys")
    return told + [float(SLOW)] * (pressed - len(told))


def quantile(values: list[float], percent: int) -> float:
    return statistics.quantiles(values, n=100, method="inclusive")[percent - 1]
