"""Search and filter within what an agent did."""

import pytest
from playwright.sync_api import Locator, expect

from tests.system.page.server import Stage
from tests.system.page.tab import NewTab, Tab


@pytest.fixture
def searching(new_tab: NewTab, stage: Stage) -> Tab:
    stage.open_gate("search", "answer")
    tab = new_tab().begin("scene tools")
    tab.expect_end()
    tab.chat.focus()
    tab.page.keyboard.press("/")
    expect(field(tab)).to_be_focused()
    return tab


def field(tab: Tab) -> Locator:
    return tab.page.get_by_role("textbox", name="Search in steps and results")


def hits(tab: Tab) -> Locator:
    return tab.page.locator(".hit")


def test_search_finds_text(searching: Tab) -> None:
    field(searching).fill("page 7")
    expect(hits(searching)).to_have_count(1)
    expect(hits(searching)).to_contain_text("search_docs")
    searching.shot("search/hits")
    field(searching).fill("xylophone")
    expect(searching.page.get_by_text("Nothing found")).to_be_visible()
    field(searching).press("Escape")
    expect(searching.chat).to_contain_text("Bees dance to tell the way.")


@pytest.mark.requirement("page-complete-results")
def test_search_finds_text_in_the_hidden_part_of_a_long_result(searching: Tab) -> None:
    field(searching).fill("needleword")
    expect(hits(searching)).to_have_count(1)
    expect(hits(searching)).to_contain_text("read_all")


def test_search_filters_by_errors_and_by_tool(searching: Tab) -> None:
    searching.page.get_by_label("Errors only").check()
    expect(hits(searching)).to_have_count(1)
    expect(hits(searching)).to_contain_text("no such file: missing.txt")
    searching.page.get_by_label("Errors only").uncheck()
    searching.page.get_by_label("Tool", exact=True).select_option("read_all")
    expect(hits(searching)).to_have_count(1)
    expect(hits(searching)).to_contain_text("honey.txt")


def test_search_result_leads_to_its_item(searching: Tab) -> None:
    field(searching).fill("page 7")
    searching.button("Show in place").click()
    expect(searching.tool("search_docs")).to_be_in_viewport()
    expect(searching.line("search_docs")).to_have_attribute("aria-expanded", "true")
    expect(field(searching)).to_have_count(0)
