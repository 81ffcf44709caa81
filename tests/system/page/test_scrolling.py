"""Scrolling: what the user reads stays in place, and what the user selects is scrolled into view."""

from collections.abc import Callable

from playwright.sync_api import Locator, expect

from tests.system.page.server import Stage
from tests.system.page.tab import Tab

AT_END = "() => (it => it.scrollHeight - it.scrollTop - it.clientHeight < 60)(document.querySelector('.chat-scroll'))"


def top(element: Locator) -> float:
    box = element.bounding_box()
    assert box is not None
    return box["y"]


def expect_over(tab: Tab) -> None:
    """Wait for the end of the run, which may be outside of the viewport."""
    expect(tab.page.locator(".session-clock .state-done")).to_be_visible()


def test_search_keeps_the_position_and_the_page_still_follows(tab: Tab, stage: Stage) -> None:
    tab.page.set_viewport_size({"width": 1000, "height": 500})
    tab.begin("scene stream")
    tab.wait("() => (document.querySelector('.chat-scroll')?.scrollTop ?? 0) > 300")
    tab.chat.press("/")
    tab.page.get_by_placeholder("Search in steps and results").fill("word")
    expect(tab.page.locator(".hits-count")).to_contain_text("hit")
    tab.page.keyboard.press("Escape")
    expect(tab.page.locator(".hits")).to_have_count(0)
    height = tab.page.evaluate("document.querySelector('.chat-scroll').scrollHeight")
    tab.wait("height => document.querySelector('.chat-scroll').scrollHeight > height + 100", height)
    tab.wait(AT_END)
    expect(tab.button("Jump to now")).to_have_count(0)
    stage.open_gate("enough")
    tab.expect_end()


def test_row_opened_at_the_end_stays_under_the_pointer(tab: Tab) -> None:
    tab.page.set_viewport_size({"width": 1000, "height": 480})
    tab.begin("scene files")
    expect_over(tab)
    tab.show_steps()
    tab.chat.press("End")
    tab.wait(AT_END)
    row = tab.line("draw")
    expect(row).to_be_visible()
    row.hover()  # scrolls it into view, also if the list replaces its element in the same moment
    before = top(row)
    row.click()
    expect(row).to_have_attribute("aria-expanded", "true")
    expect(tab.tool("draw").locator(".tool-details")).to_be_visible()
    tab.page.evaluate("() => new Promise(done => requestAnimationFrame(() => setTimeout(done, 300)))")
    assert abs(top(row) - before) <= 2


def test_step_of_a_long_collapsed_run_is_scrolled_into_view(tab: Tab) -> None:
    tab.begin("scene many")
    expect_over(tab)
    expect(tab.steps).to_have_attribute("aria-expanded", "false")
    tab.pick_pane("Code")
    for _ in range(3):
        tab.button("Previous step").click()
    expect(tab.page.locator(".focused")).to_be_in_viewport()
    expect(tab.page.locator(".focused .tool-about")).to_have_text("print(146)")


def test_unstreamed_long_answer_is_shown_from_its_beginning(tab: Tab) -> None:
    tab.page.set_viewport_size({"width": 1000, "height": 600})
    tab.begin("scene many")
    expect_over(tab)
    expect(tab.page.get_by_role("heading", name="The beginning")).to_be_in_viewport()


def test_fully_visible_answer_has_no_jump_button(tab: Tab, stage: Stage) -> None:
    tab.begin("scene brief")
    tab.wait("() => (document.querySelector('.chat-scroll')?.scrollTop ?? 0) > 300")
    stage.open_gate("enough")
    tab.expect_end()
    tab.page.evaluate("() => new Promise(done => setTimeout(done, 600))")  # the page has scrolled by then
    expect(tab.button("Jump to now")).to_have_count(0)


def test_ended_session_opens_at_its_last_question(tab: Tab) -> None:
    tab.page.set_viewport_size({"width": 1000, "height": 600})
    tab.begin("scene many")
    expect_over(tab)
    tab.page.reload()
    expect(tab.page.locator(".user-text").last).to_be_in_viewport()


def test_end_key_follows_again(tab: Tab, stage: Stage) -> None:
    tab.page.set_viewport_size({"width": 1000, "height": 500})
    tab.begin("scene stream")
    tab.wait("() => (document.querySelector('.chat-scroll')?.scrollTop ?? 0) > 300")
    tab.chat.press("Home")
    expect(tab.button("Jump to now")).to_be_visible()
    tab.shot("scrolling/jump")
    tab.chat.press("End")
    expect(tab.button("Jump to now")).to_have_count(0)
    height = tab.page.evaluate("document.querySelector('.chat-scroll').scrollHeight")
    tab.wait("height => document.querySelector('.chat-scroll').scrollHeight > height + 300", height)
    tab.wait(AT_END)
    stage.open_gate("enough")
    tab.expect_end()


def test_tab_follows_a_run_that_another_tab_begins(tab: Tab, new_tab: Callable[..., Tab], stage: Stage) -> None:
    tab.page.set_viewport_size({"width": 1000, "height": 500})
    tab.begin("hello")
    tab.expect_end()
    tab.page.reload()
    expect(tab.page.locator(".user-text").last).to_be_in_viewport()
    tab.chat.press("Shift")  # while the page still scrolls
    other = new_tab(fresh=True)
    other.open(f"#/s/{tab.session_id}").ask("scene stream")
    tab.wait("() => (document.querySelector('.chat-scroll')?.scrollTop ?? 0) > 300")
    tab.wait(AT_END)
    stage.open_gate("enough")
    tab.expect_end()
