"""Measurements of the page: opening and scrolling long sessions, typing during a stream, long answers, memory."""

import os
import time

import msgspec

from benchmarks.measurement import Log
from benchmarks.page.agents import RATE
from benchmarks.page.browser import SLOW_EVENT_MS, NewTab, Tab, chromium, tabs
from benchmarks.page.initial_load import first_load
from benchmarks.page.server import Stage, build

SETTLE_SECONDS = 5
"""Seconds for which a stream runs before and after a measurement."""
KEY_INTERVAL_SECONDS = 0.08
SCROLLS = 150
SCROLL_INTERVAL_MS = 16


class PagePlan(msgspec.Struct, frozen=True, kw_only=True):
    """Length of the session and duration of the streams with which the page is measured."""

    messages: int = 20_000
    opens: int = 5
    seconds: float = 60
    """The duration of typing during a stream."""
    tokens: int = 3_000


QUICK = PagePlan(opens=2, seconds=15)


class PageFigures(msgspec.Struct, kw_only=True):
    """The figures of the page benchmark. Times are in ms, sizes in bytes."""

    load: float
    """The load of the machine before the benchmark."""
    script: int
    """The size of the scripts of the first load."""
    open_run: list[float]
    """Times to open a session of one run."""
    open_runs: list[float]
    """Times to open a session of many runs."""
    open_heap: float
    nodes: int
    """The highest number of elements in the page with a long session."""
    wheel: list[float]
    """Frames while the session is scrolled with the wheel."""
    drag: list[float]
    """Frames while the scroll bar is dragged over the complete session."""
    keys: list[float]
    """Latencies of keys while a text is streamed."""
    keys_long: list[float]
    """Latencies of keys while a text is streamed after a long session."""
    answer_tasks: list[float]
    """Long tasks while a Markdown answer is streamed."""
    stream_heap: float
    """Growth of the heap during `keys`."""
    stream_text: float
    """The size of the text that was streamed during `keys`."""


def measure_page(plan: PagePlan, log: Log) -> PageFigures | None:
    """Measure the page. Returns None if Chromium is not installed."""
    executable = chromium()
    if executable is None:
        log("page: not measured, because there is no chromium in the PATH (apt-get install chromium)")
        return None
    folder = build(log)
    load = os.getloadavg()[0]
    with Stage() as stage, tabs(executable) as new_tab:
        log(f"page: creating two sessions of {plan.messages:,} messages")
        sessions = stage.one_run(plan.messages), stage.many_runs(plan.messages)
        log("page: opening and scrolling")
        open_run, open_runs = ([_open_ms(new_tab, url) for _ in range(plan.opens)] for url in sessions)
        with new_tab(sessions[0]) as tab:
            tab.loaded()
            heap = tab.heap()
            tab.page.click(".steps-head")
            tab.page.wait_for_timeout(1000)
            nodes = tab.nodes()
            tab.count_frames()
            wheel, drag = _wheel(tab), _drag(tab)
        log(f"page: typing while {RATE} tokens a second are streamed, {plan.seconds:.0f} s twice")
        with new_tab(stage.begin("talker", f"{plan.seconds + 2 * SETTLE_SECONDS}")) as tab:
            tab.loaded()
            before = tab.heap()
            keys = _type(tab, plan.seconds)
            grown = tab.heap() - before
        with new_tab(stage.begin("talker", f"{plan.seconds + 2 * SETTLE_SECONDS} {plan.messages}")) as tab:
            tab.page.wait_for_selector(".alive .alive-doing:text('Writing')", timeout=120_000)
            tab.page.wait_for_timeout(1000)
            nodes = max(nodes, tab.nodes())
            keys_long = _type(tab, plan.seconds)
        log(f"page: an answer of {plan.tokens:,} tokens")
        with new_tab(address := stage.begin("writer", "1")) as tab:
            tab.loaded()
            tab.page.wait_for_timeout(SETTLE_SECONDS * 1000)  # discards the tasks of opening the page
            tab.reset()
            stage.begin("writer", str(plan.tokens), address)
            tab.page.wait_for_selector(".alive")
            tab.page.wait_for_selector(".alive", state="detached", timeout=(plan.tokens / RATE + 60) * 1000)
            tasks = tab.observed("tasks")
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


def _open_ms(new_tab: NewTab, url: str) -> float:
    with new_tab(url) as tab:
        return tab.loaded()


def _wheel(tab: Tab) -> list[float]:
    box = tab.page.locator(".chat-scroll")
    box.evaluate("(box) => { box.scrollTop = box.scrollHeight / 3 }")
    box.hover()
    tab.page.wait_for_timeout(500)
    tab.reset()
    for number in range(SCROLLS):
        tab.page.mouse.wheel(0, -300 if number % 50 > 40 else 300)
        tab.page.wait_for_timeout(SCROLL_INTERVAL_MS)
    if not 0.2 < box.evaluate("(box) => box.scrollTop / box.scrollHeight") < 0.8:
        raise RuntimeError("the wheel was turned at an end of the session, where nothing scrolls")
    return tab.observed("frames")


def _drag(tab: Tab) -> list[float]:
    """Scroll in far jumps, as dragging the scroll bar does."""
    box = tab.page.locator(".chat-scroll")
    tab.reset()
    for number in range(SCROLLS):
        box.evaluate("(box, part) => { box.scrollTop = part * box.scrollHeight }", number / SCROLLS)
        tab.page.wait_for_timeout(SCROLL_INTERVAL_MS)
    return tab.observed("frames")


def _type(tab: Tab, seconds: float) -> list[float]:
    """Type keys, and return for each the time to the next frame, which the browser reports if it is slow.

    A key that the browser does not report counts as SLOW_EVENT_MS.
    """
    tab.page.click(".composer textarea")
    tab.page.wait_for_timeout(500)
    tab.reset()
    pressed = 0
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        tab.page.keyboard.press("a" if pressed % 2 == 0 else "Backspace")
        pressed += 1
        time.sleep(KEY_INTERVAL_SECONDS)
    reported = tab.observed("keys")
    return reported + [float(SLOW_EVENT_MS)] * (pressed - len(reported))
