"""The displays in a browser: during a run, at its end, and after a reload."""

import re

import pytest
from playwright.sync_api import Locator, expect

from tests.system.openwebui.agents import HOSTILE
from tests.system.openwebui.chat import Chat
from tests.system.openwebui.conftest import Environment

ANSWER = "Bees dance to tell the way. That is all."
RENDERED_MARKUP = (
    "img[src='x'], img[src*='example.org'], a[href^='javascript'], script, iframe, video, u, sup, .mention, .katex, "
    "h1, blockquote, table, strong:has-text('bold')"
)
"""Elements that would exist if the texts of the script `hostile` were rendered."""

MEASURE_GAPS = """() => {
  const gaps = (window.gaps = { ticks: 0, longest: 0 })
  let last = performance.now()
  setInterval(() => {
    const now = performance.now()
    gaps.longest = Math.max(gaps.longest, now - last)
    gaps.ticks += 1
    last = now
  }, 50)
}"""
"""Measures the longest time for which the page did not handle events."""


def expect_literal(where: Locator, text: str) -> None:
    """Check that a text is shown completely; zero-width spaces are allowed in it."""
    expect(where).to_contain_text(re.compile("\u200b?".join(re.escape(character) for character in text)))


@pytest.mark.requirement("pipe-live-rows")
def test_native_has_a_row_that_is_live_and_then_has_arguments_and_result(environment: Environment, tab: Chat) -> None:
    tab.open().send("script one tool")
    expect(tab.row("Executing search_docs")).to_be_visible()
    expect(tab.status).to_have_text("🔧 search_docs...")
    tab.expect_text("Let me look.")
    tab.screenshot("native-running")
    environment.open_gate("search")
    expect(tab.row("View Result from search_docs")).to_be_visible()
    environment.open_gate("answer")
    tab.expect_text(ANSWER)
    tab.expect_idle()
    for _ in range(2):
        tab.expect_text("Thought for")
        tab.row("search_docs").click()
        tab.expect_text("Bees dance on page 7.")
        expect(tab.answer).to_contain_text("query")
        expect(tab.status).to_have_text("Complete")
        tab.reload()
    tab.expect_text(ANSWER)


def test_sources_list_tool_results_with_parameters_and_cited_pages(environment: Environment, tab: Chat) -> None:
    environment.open_gate("search")
    environment.open_gate("answer")
    tab.open().send("script one tool")
    tab.expect_text(ANSWER)
    tab.expect_idle()
    tab.page.locator("button[aria-label*='source' i]").last.click()
    for name in ("🔧 search_docs", "https://example.org/bees"):
        expect(tab.page.get_by_text(name).last).to_be_visible()
    tab.page.get_by_text("🔧 search_docs").last.click()
    modal = tab.page.locator(".modal").last
    expect(modal).to_contain_text("Bees dance on page 7.")
    expect(modal.locator("textarea")).to_have_value(re.compile('"query": "bees"'))


def test_sources_without_tool_citations_list_only_cited_pages(environment: Environment, tab: Chat) -> None:
    environment.set_valves(SHOW_TOOL_CITATIONS=False)
    environment.open_gate("search")
    environment.open_gate("answer")
    tab.open().send("script one tool")
    tab.expect_text(ANSWER)
    tab.expect_text("1 Source")


@pytest.mark.requirement("pipe-displays")
def test_collapse_is_one_block_with_a_growing_count(environment: Environment, tab: Chat) -> None:
    environment.set_valves(DISPLAY="collapse")
    tab.open().send("script helpers")
    tab.expect_text("🔍 Execution Steps (4 tools)")
    environment.open_gate("helpers")
    tab.expect_text("Both have reported.")
    tab.expect_idle()
    for _ in range(2):
        expect(tab.answer.get_by_text("Execution Steps")).to_have_count(1)
        tab.expect_no_text("The report of the critic.")
        tab.answer.get_by_text("Execution Steps").click()
        tab.expect_text("🔧 critic › check_facts: check_facts is done")
        tab.expect_text("🔧 task: The report of the critic.")
        tab.screenshot("collapse-open")
        tab.reload()
    assert tab.answer.inner_text().count("Both have reported.") == 1


def test_collapse_has_text_before_a_tool_as_a_step_and_only_the_answer_below(
    environment: Environment, tab: Chat
) -> None:
    environment.set_valves(DISPLAY="collapse")
    tab.open().send("script one tool")
    tab.expect_text("Execution Steps (1 tool)")
    tab.expect_no_text("Let me look.")
    environment.open_gate("search")
    environment.open_gate("answer")
    tab.expect_text(ANSWER)
    tab.expect_idle()
    tab.expect_no_text("Let me look.")
    tab.answer.get_by_text("Execution Steps").click()
    tab.expect_text("🤖 AI: Let me look.")
    assert tab.answer.inner_text().count("That is all.") == 1


@pytest.mark.requirement("pipe-displays")
def test_details_has_a_block_for_each_finished_tool(environment: Environment, tab: Chat) -> None:
    environment.set_valves(DISPLAY="details")
    tab.open().send("script one tool")
    expect(tab.status).to_have_text("🔧 search_docs...")
    expect(tab.rows).to_have_count(0)
    environment.open_gate("search")
    expect(tab.row("View Result from search_docs")).to_be_visible()
    environment.open_gate("answer")
    tab.expect_text(ANSWER)
    tab.expect_idle()
    for _ in range(2):
        tab.row("search_docs").click()
        tab.expect_text("Bees dance on page 7.")
        tab.screenshot("details")
        tab.reload()


@pytest.mark.requirement("pipe-displays")
def test_plain_has_only_the_answer(environment: Environment, tab: Chat) -> None:
    environment.set_valves(DISPLAY="plain")
    tab.open().send("script one tool")
    expect(tab.status).to_have_text("🔧 search_docs...")
    environment.open_gate("search")
    environment.open_gate("answer")
    tab.expect_text(ANSWER)
    tab.expect_idle()
    for _ in range(2):
        expect(tab.rows).to_have_count(0)
        tab.expect_no_text("Let me look.")
        tab.expect_no_text("Execution Steps")
        tab.reload()
        tab.expect_text(ANSWER)


def test_sub_agents_are_live_rows_with_their_tools_below_them(environment: Environment, tab: Chat) -> None:
    tab.open().send("script helpers")
    expect(tab.answer).to_contain_text("Exploring")
    tab.open_group()
    running = ["reader · read_page (1)", "reader › read_page", "critic · check_facts (1)", "critic › check_facts"]
    expect(tab.rows).to_have_text([f"Executing {name}..." for name in running], use_inner_text=True)
    tab.screenshot("native-helpers")
    environment.open_gate("helpers")
    tab.expect_text("Both have reported.")
    tab.expect_idle()
    done = ["reader (1 tool)", "reader › read_page", "critic (1 tool)", "critic › check_facts"]
    for _ in range(2):
        tab.open_group()
        expect(tab.rows).to_have_text([f"View Result from {name}" for name in done], use_inner_text=True)
        tab.row("critic (1 tool)").click()
        tab.expect_text("The report of the critic.")
        tab.expect_no_text("SECRET WHISPER")
        tab.reload()


def test_status_line_without_sub_agents_names_only_the_main_agents_tools(environment: Environment, tab: Chat) -> None:
    environment.set_valves(SHOW_SUBAGENT_STATUS=False)
    tab.open().send("script helpers")
    tab.expect_text("Exploring")
    expect(tab.status).to_have_text("🔧 task...")


def test_failed_tool_is_red_and_has_the_error(environment: Environment, tab: Chat) -> None:
    tab.open().send("script broken")
    tab.expect_text("There is no such file.")
    tab.row("open_file").click()
    tab.expect_text("Error: no such file")
    expect(tab.row("open_file").locator(".text-red-500, [class*='red']").first).to_be_visible()


def test_result_of_50_kilobytes_is_complete(environment: Environment, tab: Chat) -> None:
    tab.open().send("script large")
    tab.expect_text("It is about honey.")
    tab.row("read_all").click()
    tab.answer.get_by_text("Show all").click()
    tab.expect_text("END")


@pytest.mark.requirement("pipe-inert-content")
@pytest.mark.parametrize("display", ["native", "collapse", "details"])
def test_markup_in_results_and_arguments_is_shown_as_text(environment: Environment, tab: Chat, display: str) -> None:
    environment.set_valves(DISPLAY=display)
    tab.open().send("script hostile")
    tab.expect_text("It was fetched.")
    tab.expect_idle()
    for _ in range(2):
        if display == "collapse":
            tab.answer.get_by_text("Execution Steps").click()
        else:
            tab.open_group()
        for number, text in enumerate(HOSTILE):
            if display != "collapse":
                tab.row(f"fetch_{number}").click()
            expect_literal(tab.answer, text)
        tab.screenshot(f"hostile-{display}")
        expect(tab.answer.locator(RENDERED_MARKUP)).to_have_count(0)
        tab.reload()


@pytest.mark.requirement("pipe-inert-content")
@pytest.mark.parametrize("display", ["native", "collapse", "details", "plain"])
def test_markup_in_a_source_is_shown_as_text(environment: Environment, tab: Chat, display: str) -> None:
    environment.set_valves(DISPLAY=display)
    tab.open().send("script hostile")
    tab.expect_text("It was fetched.")
    tab.expect_idle()
    for number, text in enumerate(HOSTILE):
        tab.open_source(f"🔧 fetch_{number}")
        expect_literal(tab.modal, text)
        tab.screenshot(f"hostile-source-{number}")
        expect(tab.modal.locator(RENDERED_MARKUP)).to_have_count(0)
        tab.close_modal()


def test_images_are_below_their_row_and_files_are_listed(environment: Environment, tab: Chat) -> None:
    tab.open().send("script picture")
    tab.expect_text("Here it is.")
    tab.expect_text("notes.txt")
    tab.answer.get_by_text("data.bin").click()
    expect(tab.page.get_by_text("data.bin: 5,000 bytes, at /artifacts/")).to_be_visible()
    tab.screenshot("native-file")
    tab.page.keyboard.press("Escape")
    for _ in range(2):
        expect(tab.answer.locator("img[src^='data:image/png']")).to_have_count(1)
        tab.reload()


def test_plan_and_output_of_a_tool_are_shown_during_the_run(environment: Environment, tab: Chat) -> None:
    tab.open().send("script plan")
    expect(tab.status).to_have_text("📋 0/2 done: Look it up")
    expect(tab.page.get_by_text("1. Look it up")).to_be_visible()
    tab.screenshot("native-plan")
    environment.open_gate("plan")
    expect(tab.row("python · line two")).to_be_visible()
    environment.open_gate("printed")
    tab.expect_text("Done as planned.")
    tab.row("python").click()
    tab.expect_text("line one")


def test_structured_answer_has_title_and_sources(environment: Environment, tab: Chat) -> None:
    tab.open().send("script structured")
    tab.expect_text("Bees dance.")
    expect(tab.answer.locator("h3")).to_have_text("On bees")
    tab.expect_text("1 Source")


def test_browser_stays_responsive_with_many_tokens_and_tools(environment: Environment, tab: Chat) -> None:
    tab.open()
    tab.evaluate(MEASURE_GAPS)
    tab.send("script much")
    tab.expect_text("word1999")
    tab.expect_idle()
    ticks, longest = tab.evaluate("[window.gaps.ticks, window.gaps.longest]")
    assert ticks > 10
    assert longest < 10_000, f"the page handled no events for {longest:.0f} ms"
    tab.open_group()
    expect(tab.rows).to_have_count(60)
