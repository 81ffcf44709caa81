"""One browser and one server for all tests of this folder; each test has its own tabs.

They are not shared with other folders, because Playwright's synchronous API holds an event loop.
"""

import re
import shutil
from collections.abc import Generator, Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, BrowserContext, expect, sync_playwright

from tests.support.wait import DEADLINE
from tests.system.page.server import AGENTS_FILE, HOSTILE, Stage, staged
from tests.system.page.tab import NewTab, Tab

GATES = ("search", "answer", "todos", "helpers", "enough", "ran", "second", "third", "printed", "patience")
FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--no-first-run",
    "--disable-component-update",
    "--disable-sync",
)


@pytest.fixture(scope="package")
def browser() -> Iterator[Browser]:
    chromium = shutil.which("chromium")
    assert chromium is not None, "there is no `chromium` in the PATH: apt-get install chromium"
    with sync_playwright() as playwright:
        expect.set_options(timeout=DEADLINE * 1000)
        browser = playwright.chromium.launch(executable_path=chromium, args=list(FLAGS))
        yield browser
        browser.close()


@pytest.fixture(scope="package")
def theatre(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    targets = (f"{AGENTS_FILE}:stage", f"{AGENTS_FILE}:second", f"{HOSTILE}:hostile")
    with staged(tmp_path_factory.mktemp("page"), *targets) as stage:
        yield stage


@pytest.fixture
def stage(theatre: Stage) -> Iterator[Stage]:
    """The server, with all gates closed."""
    theatre.close_gates()
    yield theatre
    theatre.open_gate(*GATES)


@pytest.fixture
def new_tab(browser: Browser, stage: Stage, request: pytest.FixtureRequest) -> Iterator[NewTab]:
    """Opens tabs; a `fresh` one has its own storage. Screenshots below build/page show the end of the test."""
    contexts: list[BrowserContext] = []
    tabs: list[Tab] = []
    forgiven: set[str] = set()

    def make(*, fresh: bool = False, address: str = stage.url, **options: Any) -> Tab:
        if fresh or not contexts:
            options = {"viewport": {"width": 1440, "height": 900}, "reduced_motion": "reduce", **options}
            contexts.append(browser.new_context(**options))
        tabs.append(Tab(contexts[-1], address, forgiven))
        return tabs[-1]

    yield make
    keep_pictures(request.node, [tab for tab in tabs if not tab.page.is_closed()])
    for context in contexts:
        context.close()
    assert [message for tab in tabs for message in tab.unforgiven()] == [], "the browser's console"
    assert [url for tab in tabs for url in tab.strangers()] == [], "requests to other servers"


def keep_pictures(test: Any, tabs: list[Tab]) -> None:
    name = re.sub(r"\W+", "-", test.name.removeprefix("test_")).strip("-")
    fate = "failed-" if getattr(test, "failed", False) else ""
    for number, tab in enumerate(tabs, 1):
        which = f"-{number}" if len(tabs) > 1 else ""
        tab.shot(f"{test.path.stem.removeprefix('test_')}/{fate}{name}{which}")


@pytest.fixture
def tab(new_tab: NewTab) -> Tab:
    return new_tab()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: Any) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if report.when == "call" and report.failed:
        item.failed = True  # pyright: ignore[reportAttributeAccessIssue]
    return report
