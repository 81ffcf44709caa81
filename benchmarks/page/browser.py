"""Tabs of a Chromium, and the measurements of its performance observers: long tasks, slow events, frames."""

import shutil
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any, Self, cast

from playwright.sync_api import Browser, Page, ViewportSize, sync_playwright

FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--no-first-run",
    "--disable-component-update",
    "--disable-sync",
)
SLOW_EVENT_MS = 16
"""Duration from which the browser reports an event, its lowest threshold."""
LONG_TASK_MS = 50
"""Duration from which the browser reports a task as long."""
VIEWPORT: ViewportSize = {"width": 1440, "height": 900}

OBSERVE = """(() => {
  const observed = { tasks: [], keys: [], frames: [] };
  window.limelightObserved = observed;
  new PerformanceObserver((list) => {
    for (const task of list.getEntries()) observed.tasks.push(task.duration);
  }).observe({ type: "longtask", buffered: true });
  new PerformanceObserver((list) => {
    for (const event of list.getEntries()) if (event.name === "keydown") observed.keys.push(event.duration);
  }).observe({ type: "event", durationThreshold: SLOW_EVENT_MS, buffered: true });
})()""".replace("SLOW_EVENT_MS", str(SLOW_EVENT_MS))

COUNT_FRAMES = """() => {
  let last = performance.now();
  const frame = () => {
    const now = performance.now();
    limelightObserved.frames.push(now - last);
    last = now;
    requestAnimationFrame(frame);
  };
  requestAnimationFrame(frame);
}"""
"""Script that records the duration of each frame. It makes the page draw continuously, so it runs only when needed."""


def chromium() -> str | None:
    return shutil.which("chromium")


class Tab:
    """A browser tab whose long tasks, slow events and frames are measured from its first navigation on."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self._devtools = page.context.new_cdp_session(page)
        page.add_init_script(OBSERVE)

    def open(self, url: str) -> Self:
        self.page.goto(url)
        return self

    def loaded(self, seconds: float = 60) -> float:
        """Wait for the mark that the page sets when the history is shown, and return its time in ms."""
        return self.until("performance.getEntriesByName('limelight:loaded')[0]?.startTime", seconds)

    def until(self, expression: str, seconds: float = 60) -> Any:
        """Wait until a JavaScript expression is true, and return its value.

        Playwright's own wait does not work, because the page's security policy forbids `eval`.
        """
        for _ in range(int(seconds * 50)):
            if value := self.page.evaluate(expression):
                return value
            self.page.wait_for_timeout(20)
        raise TimeoutError(f"not true within {seconds} s: {expression}")

    def count_frames(self) -> None:
        self.page.evaluate(COUNT_FRAMES)

    def reset(self) -> None:
        """Discard all measurements so far."""
        self.page.evaluate("for (const list of Object.values(limelightObserved)) list.length = 0")

    def observed(self, what: str) -> list[float]:
        """Return the measured durations of `tasks`, `keys` or `frames`, in ms."""
        # Performance observers are called up to two frames and a task after the event.
        self.page.evaluate("new Promise((go) => requestAnimationFrame(() => setTimeout(go, 100)))")
        return self.page.evaluate("(what) => limelightObserved[what].slice()", what)

    def heap(self) -> float:
        """Return the size of the heap in bytes, after a garbage collection."""
        send = cast("Callable[[str], dict[str, float]]", self._devtools.send)  # pyright: ignore[reportUnknownMemberType]
        send("HeapProfiler.collectGarbage")
        return send("Runtime.getHeapUsage")["usedSize"]

    def nodes(self) -> int:
        return self.page.evaluate("document.querySelectorAll('*').length")

    def script_bytes(self) -> int:
        """Return the compressed size in bytes of all scripts that were loaded."""
        return self.page.evaluate(
            """performance.getEntriesByType("resource").filter((one) => /\\.js(\\?|$)/.test(one.name))
            .reduce((sum, one) => sum + one.encodedBodySize, 0)"""
        )

    def close(self) -> None:
        self.page.context.close()


@contextmanager
def tabs(executable: str) -> "Generator[NewTab]":
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=executable, args=list(FLAGS))
        yield NewTab(browser)
        browser.close()


class NewTab:
    """Opens tabs, each in a browser context with an empty cache."""

    def __init__(self, browser: Browser) -> None:
        self._browser = browser

    @contextmanager
    def __call__(self, url: str) -> Generator[Tab]:
        tab = Tab(self._browser.new_context(viewport=VIEWPORT).new_page())
        try:
            yield tab.open(url)
        finally:
            tab.close()
