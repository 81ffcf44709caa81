"""Formats the figures of the page benchmark as a table and as a section of `docs/benchmarks.md`."""

import statistics
from typing import NamedTuple

from benchmarks.measurement import quantile
from benchmarks.page.agents import RATE
from benchmarks.page.browser import LONG_TASK_MS, SLOW_EVENT_MS
from benchmarks.page.measurement import PageFigures, PagePlan
from benchmarks.report import aligned, cell, number

TITLE = "## The page"
UNMEASURED = f"""{TITLE}

Not measured: there was no Chromium.
"""
SECTION = f"""{TITLE}

This section measures the page in Chromium without a graphics card, on the machine that also runs the server. All
times come from the browser: marks, frames, event timing (from a key to the next frame) and long tasks. A session of
{{messages:,}} messages is opened with an empty cache, from the navigation to the mark that the page sets when the
complete session is readable. While keys are typed, a text is streamed at {RATE} tokens a second for {{seconds:.0f}}
s. The answer has {{tokens:,}} tokens at that rate, with code and tables. Frames are counted while a session of one
run is scrolled with all its steps open. The load of the machine was {{load:.1f}} before.

{{table}}

Event timing reports nothing under {SLOW_EVENT_MS} ms, and has steps of 8 ms; long tasks begin at {LONG_TASK_MS} ms.
Only visible items are in the document: it never had more than {{nodes:,}} elements.
`.venv/bin/python -m benchmarks.page --write` measures this section alone.
"""


class Line(NamedTuple):
    """One line of the table, with the target value of its figure."""

    what: str
    figure: str
    aim: str
    is_met: bool


def page_lines(figures: PageFigures, plan: PagePlan) -> list[Line]:
    messages = f"{plan.messages:,} messages"
    answer = max(figures.answer_tasks, default=0)
    return [
        _at_most(f"{messages} in one run, opened (ms)", figures.open_run, 2000),
        _at_most(f"{messages} in many runs, opened (ms)", figures.open_runs, 2000),
        *_frames("scrolled by the wheel", figures.wheel),
        *_frames("scrolled by dragging the bar", figures.drag),
        *_keys("key while it streams", figures.keys),
        *_keys(f"key while it streams behind {messages}", figures.keys_long),
        Line("longest task while an answer streams (ms)", _task(answer), f"{LONG_TASK_MS}", answer <= LONG_TASK_MS),
        Line(
            "script of the first load, compressed (kB)", number(figures.script / 1000), "400", figures.script < 400_000
        ),
        Line(f"heap with {messages} (MB)", number(figures.open_heap / 1e6), "", True),
        Line(
            f"heap that {plan.seconds:.0f} s of text add (MB)",
            f"{number(figures.stream_heap / 1e6)} for {number(figures.stream_text / 1e6)} of text",
            "",
            True,
        ),
    ]


def page_table(figures: PageFigures, plan: PagePlan) -> str:
    rows = [["the page", "measured", "aim", ""], ["---"] * 4]
    for line in page_lines(figures, plan):
        verdict = "" if not line.aim else "met" if line.is_met else "missed"
        rows.append([line.what, line.figure, line.aim, verdict])
    return aligned(rows)


def page_section(figures: PageFigures | None, plan: PagePlan) -> str:
    if figures is None:
        return UNMEASURED
    return SECTION.format(
        messages=plan.messages,
        seconds=plan.seconds,
        tokens=plan.tokens,
        load=figures.load,
        nodes=figures.nodes,
        table=page_table(figures, plan),
    )


def _at_most(what: str, values: list[float], aim: float) -> Line:
    return Line(what, cell(values), f"{aim:,.0f}", statistics.median(values) <= aim)


def _frames(what: str, frames: list[float]) -> list[Line]:
    late = sum(frame > LONG_TASK_MS for frame in frames) / max(1, len(frames))
    return [
        Line(f"{what}: frames over {LONG_TASK_MS} ms (%)", number(100 * late), "1", late <= 0.01),
        Line(f"{what}: longest frame (ms)", number(max(frames, default=0)), "", True),
    ]


def _keys(what: str, keys: list[float]) -> list[Line]:
    p99 = quantile(keys, 99)
    return [
        Line(f"{what}, p50 (ms)", _key(quantile(keys, 50)), f"{LONG_TASK_MS}", quantile(keys, 50) <= LONG_TASK_MS),
        Line(f"{what}, p99 (ms)", _key(p99), f"{LONG_TASK_MS}", p99 <= LONG_TASK_MS),
    ]


def _key(ms: float) -> str:
    return f"≤ {SLOW_EVENT_MS}" if ms <= SLOW_EVENT_MS else number(ms)


def _task(ms: float) -> str:
    return f"< {LONG_TASK_MS}" if ms == 0 else number(ms)
