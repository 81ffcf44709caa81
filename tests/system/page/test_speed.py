"""The page stays fast. The bounds are ten times those of `make bench`, which measures exactly."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, expect

from benchmarks.page.browser import NewTab, Tab
from benchmarks.page.initial_load import first_load, first_scripts
from benchmarks.page.server import PAGE, Stage
from tests.system.page.long_tasks import watched_tasks

MESSAGES = 20_000
MOST_NODES = 3_000
LONGEST_TASK = 500
"""Milliseconds."""
OPENS_IN = 20_000
FIRST_LOAD = 400_000
"""Bytes."""
LAZY = ("katex", "CodePane", "TerminalPane", "TimelinePane", "FilesPane")


@pytest.fixture(scope="module")
def talkers() -> Iterator[Stage]:
    with Stage() as stage:
        yield stage


@pytest.fixture
def opened(browser: Browser) -> NewTab:
    return NewTab(browser)


def test_first_load_is_small_and_omits_the_panes(talkers: Stage, opened: NewTab) -> None:
    names = [file.name for file in first_scripts(PAGE)]
    assert len(names) >= 2
    assert not [name for name in names if name.startswith(LAZY)]
    assert first_load(PAGE) < FIRST_LOAD
    with opened(talkers.url) as tab:
        tab.page.get_by_role("textbox").first.wait_for()
        # The browser counts the same bytes: nothing else is loaded by itself.
        assert tab.script_bytes() == first_load(PAGE)


def test_session_of_20_000_messages_opens_with_visible_rows_only(talkers: Stage, opened: NewTab) -> None:
    with opened(talkers.one_run(MESSAGES)) as tab:
        assert tab.loaded() < OPENS_IN
        expect(tab.page.locator(".run-cost")).to_be_visible()
        assert tab.nodes() < MOST_NODES
        with watched_tasks(tab) as tasks:
            tab.page.click(".steps-head")
            expect(tab.page.locator(".row").nth(5)).to_be_attached()
            assert _place(tab) < 0.01, "who opens the steps stays at their beginning"
            for place in (0.25, 0.5, 0.75):
                _scroll(tab, place)
                assert abs(_place(tab) - place) < 0.05
                assert tab.nodes() < MOST_NODES
        assert tasks.longest < LONGEST_TASK


def test_long_answer_does_not_block_typing(talkers: Stage, opened: NewTab) -> None:
    address = talkers.one_run(2)
    with opened(address) as tab:
        tab.loaded()
        tab.page.wait_for_timeout(1000)  # until it has found its place; who takes over before stays there
        tab.page.click(".composer textarea")
        with watched_tasks(tab) as tasks:
            talkers.begin("writer", "3000 300", address)
            expect(tab.page.locator(".alive")).to_be_attached()
            while tab.page.locator(".alive").count() > 0:
                tab.page.keyboard.press("a")
        assert tab.page.locator(".composer textarea").input_value().startswith("a")
        assert tab.page.locator("table").count() >= 2
        assert tab.page.locator("figure").count() >= 2
        assert tasks.longest < LONGEST_TASK


def test_text_after_a_long_session_does_not_block_the_page(talkers: Stage, opened: NewTab) -> None:
    with opened(talkers.begin("talker", f"3 {MESSAGES // 5}")) as tab:
        with watched_tasks(tab) as tasks:
            expect(tab.page.locator(".run-cost")).to_be_visible()
        assert tab.nodes() < MOST_NODES
        assert tasks.longest < LONGEST_TASK


def _place(tab: Tab) -> float:
    """The scroll position, 0 to 1."""
    return tab.page.locator(".chat-scroll").evaluate("(box) => box.scrollTop / box.scrollHeight")


def _scroll(tab: Tab, place: float) -> None:
    """Scroll to a position, and wait until its rows are rendered."""
    box = tab.page.locator(".chat-scroll")
    box.evaluate("(box, place) => { box.scrollTop = place * box.scrollHeight }", place)
    tab.until(
        """(() => {
          const box = document.querySelector(".chat-scroll").getBoundingClientRect();
          const middle = box.top + box.height / 2;
          return [...document.querySelectorAll(".row")].some((row) => {
            const { top, bottom } = row.getBoundingClientRect();
            return top < middle && bottom > middle;
          });
        })()"""
    )
