"""How an agent's work looks: live, at the end, and after a reload."""

import re

import pytest
from playwright.sync_api import Locator, expect

from tests.system.openwebui.agents import HOSTILE
from tests.system.openwebui.chat import Chat
from tests.system.openwebui.conftest import Stage

ANSWER = "Bees dance to tell the way. That is all."
MADE_OF_TEXT = (
    "img[src='x'], img[src*='example.org'], a[href^='javascript'], script, iframe, video, u, sup, .mention, .katex, "
    "h1, blockquote, table, strong:has-text('bold')"
)
"""What would be there if the hostile scene were taken for more than text."""

LONGEST_GAP = """() => {
  const gaps = (window.gaps = { ticks: 0, longest: 0 })
  let last = performance.now()
  setInterval(() => {
    const now = performance.now()
    gaps.longest = Math.max(gaps.longest, now - last)
    gaps.ticks += 1
    last = now
  }, 50)
}"""
"""Notes how long the page was too busy for anything else."""


def expect_shown(where: Locator, text: str) -> None:
    """All of it, but for signs without width."""
    expect(where).to_contain_text(re.compile("\u200b?".join(re.escape(sign) for sign in text)))


def test_a_tool_is_a_row_that_spins_and_then_holds_arguments_and_result(stage: Stage, tab: Chat) -> None:
    tab.open().say("scene one tool")
    expect(tab.row("Executing search_docs")).to_be_visible()
    expect(tab.status).to_have_text("🔧 search_docs...")
    tab.expect_text("Let me look.")
    tab.shot("native-running")
    stage.open_gate("search")
    expect(tab.row("View Result from search_docs")).to_be_visible()
    stage.open_gate("answer")
    tab.expect_text(ANSWER)
    tab.expect_end()
    for _ in range(2):
        tab.expect_text("Thought for")
        tab.row("search_docs").click()
        tab.expect_text("Bees dance on page 7.")
        expect(tab.answer).to_contain_text("query")
        expect(tab.status).to_have_text("Complete")
        tab.reload()
    tab.expect_text(ANSWER)


def test_results_and_sources_are_listed_with_their_parameters(stage: Stage, tab: Chat) -> None:
    stage.open_gate("search")
    stage.open_gate("answer")
    tab.open().say("scene one tool")
    tab.expect_text(ANSWER)
    tab.expect_end()
    tab.page.locator("button[aria-label*='source' i]").last.click()
    for name in ("🔧 search_docs", "https://example.org/bees"):
        expect(tab.page.get_by_text(name).last).to_be_visible()
    tab.page.get_by_text("🔧 search_docs").last.click()
    modal = tab.page.locator(".modal").last
    expect(modal).to_contain_text("Bees dance on page 7.")
    expect(modal.locator("textarea")).to_have_value(re.compile('"query": "bees"'))


def test_without_citations_only_what_the_agent_cites_is_listed(stage: Stage, tab: Chat) -> None:
    stage.valves(SHOW_TOOL_CITATIONS=False)
    stage.open_gate("search")
    stage.open_gate("answer")
    tab.open().say("scene one tool")
    tab.expect_text(ANSWER)
    tab.expect_text("1 Source")


def test_the_collapse_is_one_block_that_counts_while_it_grows(stage: Stage, tab: Chat) -> None:
    stage.valves(DISPLAY="collapse")
    tab.open().say("scene helpers")
    tab.expect_text("🔍 Execution Steps (4 tools)")
    stage.open_gate("helpers")
    tab.expect_text("Both have reported.")
    tab.expect_end()
    for _ in range(2):
        expect(tab.answer.get_by_text("Execution Steps")).to_have_count(1)
        tab.expect_no_text("The report of the critic.")
        tab.answer.get_by_text("Execution Steps").click()
        tab.expect_text("🔧 critic › check_facts: check_facts is done")
        tab.expect_text("🔧 task: The report of the critic.")
        tab.shot("collapse-open")
        tab.reload()
    assert tab.answer.inner_text().count("Both have reported.") == 1


def test_in_a_collapse_what_was_said_before_a_tool_is_a_step_and_the_answer_stands_alone(
    stage: Stage, tab: Chat
) -> None:
    stage.valves(DISPLAY="collapse")
    tab.open().say("scene one tool")
    tab.expect_text("Execution Steps (1 tool)")
    tab.expect_no_text("Let me look.")
    stage.open_gate("search")
    stage.open_gate("answer")
    tab.expect_text(ANSWER)
    tab.expect_end()
    tab.expect_no_text("Let me look.")
    tab.answer.get_by_text("Execution Steps").click()
    tab.expect_text("🤖 AI: Let me look.")
    assert tab.answer.inner_text().count("That is all.") == 1


def test_details_are_a_block_for_each_finished_tool(stage: Stage, tab: Chat) -> None:
    stage.valves(DISPLAY="details")
    tab.open().say("scene one tool")
    expect(tab.status).to_have_text("🔧 search_docs...")
    expect(tab.rows).to_have_count(0)
    stage.open_gate("search")
    expect(tab.row("View Result from search_docs")).to_be_visible()
    stage.open_gate("answer")
    tab.expect_text(ANSWER)
    tab.expect_end()
    for _ in range(2):
        tab.row("search_docs").click()
        tab.expect_text("Bees dance on page 7.")
        tab.shot("details")
        tab.reload()


def test_plain_is_the_answer_alone(stage: Stage, tab: Chat) -> None:
    stage.valves(DISPLAY="plain")
    tab.open().say("scene one tool")
    expect(tab.status).to_have_text("🔧 search_docs...")
    stage.open_gate("search")
    stage.open_gate("answer")
    tab.expect_text(ANSWER)
    tab.expect_end()
    for _ in range(2):
        expect(tab.rows).to_have_count(0)
        tab.expect_no_text("Let me look.")
        tab.expect_no_text("Execution Steps")
        tab.reload()
        tab.expect_text(ANSWER)


def test_sub_agents_are_rows_with_a_live_label_and_their_tools_below_them(stage: Stage, tab: Chat) -> None:
    tab.open().say("scene helpers")
    expect(tab.answer).to_contain_text("Exploring")
    tab.open_group()
    running = ["reader · read_page (1)", "reader › read_page", "critic · check_facts (1)", "critic › check_facts"]
    expect(tab.rows).to_have_text([f"Executing {name}..." for name in running], use_inner_text=True)
    tab.shot("native-helpers")
    stage.open_gate("helpers")
    tab.expect_text("Both have reported.")
    tab.expect_end()
    done = ["reader (1 tool)", "reader › read_page", "critic (1 tool)", "critic › check_facts"]
    for _ in range(2):
        tab.open_group()
        expect(tab.rows).to_have_text([f"View Result from {name}" for name in done], use_inner_text=True)
        tab.row("critic (1 tool)").click()
        tab.expect_text("The report of the critic.")
        tab.expect_no_text("SECRET WHISPER")
        tab.reload()


def test_the_status_line_is_silent_about_sub_agents_if_it_should_be(stage: Stage, tab: Chat) -> None:
    stage.valves(SHOW_SUBAGENT_STATUS=False)
    tab.open().say("scene helpers")
    tab.expect_text("Exploring")
    expect(tab.status).to_have_text("🔧 task...")


def test_a_failed_tool_is_red_and_holds_the_error(stage: Stage, tab: Chat) -> None:
    tab.open().say("scene broken")
    tab.expect_text("There is no such file.")
    tab.row("open_file").click()
    tab.expect_text("Error: no such file")
    expect(tab.row("open_file").locator(".text-red-500, [class*='red']").first).to_be_visible()


def test_a_result_of_50_kilobytes_is_there_as_a_whole(stage: Stage, tab: Chat) -> None:
    tab.open().say("scene large")
    tab.expect_text("It is about honey.")
    tab.row("read_all").click()
    tab.answer.get_by_text("Show all").click()
    tab.expect_text("END")


@pytest.mark.parametrize("display", ["native", "collapse", "details"])
def test_html_and_markdown_of_results_and_arguments_are_text(stage: Stage, tab: Chat, display: str) -> None:
    stage.valves(DISPLAY=display)
    tab.open().say("scene hostile")
    tab.expect_text("It was fetched.")
    tab.expect_end()
    for _ in range(2):
        if display == "collapse":
            tab.answer.get_by_text("Execution Steps").click()
        else:
            tab.open_group()
        for number, text in enumerate(HOSTILE):
            if display != "collapse":
                tab.row(f"fetch_{number}").click()
            expect_shown(tab.answer, text)
        tab.shot(f"hostile-{display}")
        expect(tab.answer.locator(MADE_OF_TEXT)).to_have_count(0)
        tab.reload()


@pytest.mark.parametrize("display", ["native", "collapse", "details", "plain"])
def test_html_and_markdown_of_a_source_are_text(stage: Stage, tab: Chat, display: str) -> None:
    stage.valves(DISPLAY=display)
    tab.open().say("scene hostile")
    tab.expect_text("It was fetched.")
    tab.expect_end()
    for number, text in enumerate(HOSTILE):
        tab.open_source(f"🔧 fetch_{number}")
        expect_shown(tab.modal, text)
        tab.shot(f"hostile-source-{number}")
        expect(tab.modal.locator(MADE_OF_TEXT)).to_have_count(0)
        tab.close_modal()


def test_images_stand_below_the_row_and_files_are_listed(stage: Stage, tab: Chat) -> None:
    tab.open().say("scene picture")
    tab.expect_text("Here it is.")
    tab.expect_text("notes.txt")
    tab.answer.get_by_text("data.bin").click()
    expect(tab.page.get_by_text("data.bin: 5,000 bytes, at /artifacts/")).to_be_visible()
    tab.shot("native-file")
    tab.page.keyboard.press("Escape")
    for _ in range(2):
        expect(tab.answer.locator("img[src^='data:image/png']")).to_have_count(1)
        tab.reload()


def test_a_plan_and_the_output_of_a_tool_are_seen_while_it_runs(stage: Stage, tab: Chat) -> None:
    tab.open().say("scene plan")
    expect(tab.status).to_have_text("📋 0/2 done: Look it up")
    expect(tab.page.get_by_text("1. Look it up")).to_be_visible()
    tab.shot("native-plan")
    stage.open_gate("plan")
    expect(tab.row("python · line two")).to_be_visible()
    stage.open_gate("printed")
    tab.expect_text("Done as planned.")
    tab.row("python").click()
    tab.expect_text("line one")


def test_a_structured_answer_has_its_title_and_its_sources(stage: Stage, tab: Chat) -> None:
    tab.open().say("scene structured")
    tab.expect_text("Bees dance.")
    expect(tab.answer.locator("h3")).to_have_text("On bees")
    tab.expect_text("1 Source")


def test_many_tokens_and_many_tools_leave_the_browser_responsive(stage: Stage, tab: Chat) -> None:
    tab.open()
    tab.evaluate(LONGEST_GAP)
    tab.say("scene much")
    tab.expect_text("word1999")
    tab.expect_end()
    ticks, longest = tab.evaluate("[window.gaps.ticks, window.gaps.longest]")
    assert ticks > 10
    assert longest < 3_000, f"for {longest:.0f} ms nothing could be clicked"
    tab.open_group()
    expect(tab.rows).to_have_count(60)
