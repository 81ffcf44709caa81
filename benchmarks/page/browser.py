"""A Chromium with one tab, and what its own observers have seen: long tasks, slow events, frames."""

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
SLOW = 16
"""Events that took fewer ms are not told of: the browser has no finer threshold."""
LONG = 50
"""Tasks of fewer ms are not told of either."""
SIZE: ViewportSize = {"width": 1440, "height": 900}

WATCH = """(() => {
  const seen = { tasks: [], keys: [], frames: [] };
  window.limelightSeen = seen;
  new PerformanceObserver((list) => {
    for (const task of list.getEntries()) seen.tasks.push(task.duration);
  }).observe({ type: "longtask", buffered: true });
  new PerformanceObserver((list) => {
    for (const event of list.getEntries()) if (event.name === "keydown") seen.keys.push(event.duration);
  }).observe({ type: "event", durationThreshold: SLOW, buffered: true });
})()""".replace("SLOW", str(SLOW))

COUNT_FRAMES = """() => {
  let last = performance.now();
  const frame = () => {
    const now = performance.now();
    limelightSeen.frames.push(now - last);
    last = now;
    requestAnimationFrame(frame);
  };
  requestAnimationFrame(frame);
}"""
"""Makes the page draw without a pause, so it is not done where something else is measured."""


def chromium() -> str | None:
    return shutil.which("chromium")


class Tab:
    """One page, watched from its first moment."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self._devtools = page.context.new_cdp_session(page)
        page.add_init_script(WATCH)

    def open(self, url: str) -> Self:
        self.page.goto(url)
        return self

    def loaded(self, seconds: float = 60) -> float:
        """Wait for the mark that the page sets when the history is shown, and give its time in ms."""
        return self.until("performance.getEntriesByName('limelight:loaded')[0]?.startTime", seconds)

    def until(self, expression: str, seconds: float = 60) -> Any:
        """What it gives, as soon as that is true. Playwright's own waiting is against the page's policy."""
        for _ in range(int(seconds * 50)):
            if found := self.page.evaluate(expression):
                return found
            self.page.wait_for_timeout(20)
        raise TimeoutError(f"after {seconds} s there is still no {expression}")

    def count_frames(self) -> None:
        self.page.evaluate(COUNT_FRAMES)

    def forget(self) -> None:
        """What was seen so far does not count."""
        self.page.evaluate("for (const list of Object.values(limelightSeen)) list.length = 0")

    def seen(self, what: str) -> list[float]:
        """`tasks`, `keys` or `frames`, in ms."""
        # Observers are told late: two frames and a task behind the last thing that happened.
        self.page.evaluate("new Promise((go) => requestAnimationFrame(() => setTimeout(go, 100)))")
        return self.page.evaluate("(what) => limelightSeen[what].slice()", what)

    def heap(self) -> float:
        """Bytes that script holds, without what nobody needs."""
        send = cast("Callable[[str], dict[str, float]]", self._devtools.send)  # pyright: ignore[reportUnknownMemberType]
        send("HeapProfiler.collectGarbage")
        return send("Runtime.getHeapUsage")["usedSize"]

    def nodes(self) -> int:
        return self.page.evaluate("document.querySelectorAll('*').length")

    def script_bytes(self) -> int:
        """Compressed bytes of script that were loaded so far."""
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
    """Makes tabs, each of a browser with nothing in its cache or memory."""

    def __init__(self, browser: Browser) -> None:
        self._browser = browser

    @contextmanager
    def __call__(self, url: str) -> Generator[Tab]:
        tab = Tab(self._browser.new_context(viewport=SIZE).new_page())
        try:
            yield tab.open(url)
        finally:
            tab.close()
