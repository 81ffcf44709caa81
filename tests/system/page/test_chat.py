"""The conversation shows the work of an agent live."""

import re

import pytest
from playwright.sync_api import Locator, expect

from tests.system.page.agents import LONG
from tests.system.page.server import Stage
from tests.system.page.tab import NewTab, Tab


@pytest.mark.requirement("page-live")
def test_tool_is_shown_while_it_runs_and_afterwards(tab: Tab, stage: Stage) -> None:
    tab.begin("Please play scene tools")
    expect(tab.page.get_by_role("article", name="You asked")).to_contain_text("Please play scene tools")
    search = tab.line("search_docs")
    expect(search.get_by_role("img", name="running")).to_be_visible()
    expect(search).to_contain_text("bees")
    expect(tab.steps).to_have_attribute("aria-expanded", "true")
    clock = search.locator(".time")
    before = clock.inner_text()
    expect(clock).not_to_have_text(before)
    expect(tab.page.locator(".alive")).to_contain_text("search_docs bees")
    tab.shot("chat/running")

    stage.open_gate("search")
    expect(search.get_by_role("img", name="done")).to_be_visible()
    expect(clock).to_have_text(re.compile(r"^[\d.]+ (ms|s)$"))
    expect(tab.steps).to_contain_text("Execution steps (3 tools)")
    expect(search).to_have_attribute("aria-expanded", "false")
    search.click()
    details = tab.tool("search_docs").locator(".tool-details")
    expect(details).to_contain_text('"limit": 3')
    expect(details).to_contain_text("Bees dance on page 7.")


@pytest.mark.requirement("page-live")
def test_failed_tool_is_red_and_open(tab: Tab, stage: Stage) -> None:
    stage.open_gate("search")
    tab.begin("scene tools")
    failed = tab.line("open_file")
    expect(failed).to_have_attribute("aria-expanded", "true")
    expect(failed.get_by_role("img", name="failed")).to_be_visible()
    error = tab.tool("open_file").locator(".tool-error")
    expect(error).to_have_text("no such file: missing.txt")
    red, green, blue = (int(part) for part in re.findall(r"\d+", colour_of(error))[:3])
    assert red > 1.5 * green and red > 1.5 * blue


@pytest.mark.requirement("page-complete-results")
def test_long_result_can_be_shown_and_copied_completely(new_tab: NewTab, stage: Stage) -> None:
    stage.open_gate("search", "answer")
    tab = new_tab(permissions=["clipboard-read", "clipboard-write"]).begin("scene tools")
    tab.expect_end()
    tab.show_steps()
    tab.line("read_all").click()
    details = tab.tool("read_all").locator(".tool-details")
    expect(details).to_contain_text("BEGIN honey")
    assert len(details.inner_text()) < 5_000
    details.get_by_role("button", name="Copy result").click()
    tab.expect_clipboard(LONG)
    details.get_by_role("button", name="Show whole result").click()
    more = details.get_by_role("button", name="Show more")
    while not details.get_by_text("needleword END").count():
        more.or_(details.get_by_text("needleword END")).first.click()
    assert LONG in details.inner_text()


def test_thoughts_and_plans_are_collapsed_rows(tab: Tab, stage: Stage) -> None:
    tab.begin("scene tools")
    thought = tab.page.locator(".thought")
    expect(thought).to_contain_text("Thought")
    expect(thought).to_contain_text("so I look for bees")
    thought.get_by_role("button").click()
    expect(thought.locator("strong")).to_have_text("bees")
    expect(tab.page.locator(".plan li")).to_have_text(["Search", "Read", "Answer"])


def test_todos_are_updated_live(tab: Tab, stage: Stage) -> None:
    tab.begin("scene todos")
    todos = tab.page.get_by_role("region", name="To do")
    expect(todos.get_by_text("0 of 2 done")).to_be_visible()
    expect(todos.get_by_role("listitem").filter(has_text="Look it up").get_by_role("img")).to_have_accessible_name(
        "running"
    )
    stage.open_gate("todos")
    expect(todos.get_by_text("1 of 2 done")).to_be_visible()
    expect(todos).to_have_count(1)
    expect(todos.get_by_role("listitem").filter(has_text="Answer").get_by_role("img")).to_have_accessible_name(
        "running"
    )


@pytest.mark.requirement("page-live")
def test_parallel_sub_agents_are_side_by_side(tab: Tab, stage: Stage) -> None:
    tab.begin("scene helpers")
    reader, critic = tab.lane("reader"), tab.lane("critic")
    expect(reader.locator(".lane-task").first).to_have_text("Be the reader of page 7")
    counter = reader.get_by_role("region", name="Sub-agent counter")
    expect(counter.locator(".tool-name")).to_have_text("count_bees")
    expect(critic).to_contain_text("check_facts")
    left, right = reader.bounding_box(), critic.bounding_box()
    assert left is not None and right is not None
    assert abs(left["y"] - right["y"]) < 2
    assert left["x"] + left["width"] <= right["x"]
    inner = counter.bounding_box()
    assert inner is not None and left["x"] < inner["x"] < inner["x"] + inner["width"] <= left["x"] + left["width"]

    tab.shot("chat/lanes")
    stage.open_gate("helpers")
    tab.expect_end()
    tab.show_steps()
    expect(critic).to_contain_text("The facts are right.")
    expect(critic.get_by_role("img", name="running")).to_have_count(0)
    expect(tab.steps).to_contain_text("6 tools")


def test_answer_has_title_and_sources(tab: Tab) -> None:
    tab.begin("scene document")
    answer = tab.answer
    expect(answer.get_by_role("heading", name="On bees")).to_be_visible()
    expect(answer.get_by_role("heading", name="How they dance")).to_be_visible()
    expect(answer.get_by_role("cell", name="round")).to_be_visible()
    link = answer.locator(".text-sources").get_by_role("link")
    expect(link).to_have_attribute("href", "https://example.org/bees")
    expect(link).to_have_attribute("rel", re.compile("noopener.*noreferrer"))
    expect(answer.locator(".text-sources li")).to_have_count(2)


def test_images_and_files_are_shown_in_place(tab: Tab) -> None:
    tab.begin("scene files")
    tab.expect_end()
    image = tab.chat.get_by_role("img", name="dot.png")
    expect(image).to_be_visible()
    tab.wait("() => [...document.images].some(one => one.naturalWidth === 32)")
    expect(tab.chat.get_by_text("notes.txt").first).to_be_visible()


def test_steps_collapse_at_the_end_and_remember_the_choice(tab: Tab, stage: Stage) -> None:
    tab.begin("scene tools")
    expect(tab.steps).to_have_attribute("aria-expanded", "true")
    stage.open_gate("search", "answer")
    tab.expect_end()
    expect(tab.steps).to_have_attribute("aria-expanded", "false")
    expect(tab.tool("search_docs")).to_have_count(0)
    expect(tab.chat).to_contain_text("Bees dance to tell the way.")

    tab.steps.click()
    expect(tab.tool("search_docs")).to_be_visible()
    tab.page.reload()
    expect(tab.tool("search_docs")).to_be_visible()
    tab.steps.click()
    expect(tab.tool("search_docs")).to_have_count(0)
    tab.page.reload()
    expect(tab.chat).to_contain_text("Bees dance to tell the way.")
    expect(tab.steps).to_have_attribute("aria-expanded", "false")


def test_steps_collapsed_during_a_run_stay_collapsed(tab: Tab, stage: Stage) -> None:
    tab.begin("scene tools")
    expect(tab.tool("search_docs")).to_be_visible()
    tab.steps.click()
    expect(tab.tool("search_docs")).to_have_count(0)
    expect(tab.steps).to_contain_text("search_docs bees")
    tab.page.reload()
    expect(tab.steps).to_contain_text("search_docs bees")
    expect(tab.tool("search_docs")).to_have_count(0)


def test_streaming_text_does_not_move_what_is_above(tab: Tab, stage: Stage) -> None:
    tab.page.set_viewport_size({"width": 1440, "height": 1800})
    tab.begin("scene words")
    expect(tab.chat).to_contain_text("word20 ")
    watch_top(tab, ".tool")
    expect(tab.chat).to_contain_text("word80 ")
    assert spread(tab) <= 1
    stage.open_gate("enough")
    tab.expect_end()


def test_page_follows_the_end_only_if_it_is_there(tab: Tab, stage: Stage) -> None:
    tab.page.set_viewport_size({"width": 1000, "height": 500})
    tab.begin("scene stream")
    box = ".chat-scroll"
    tab.wait("box => { const it = document.querySelector(box); return it && it.scrollTop > 300 }", box)
    expect(tab.button("Jump to now")).to_have_count(0)
    at_end = "box => (it => it.scrollHeight - it.scrollTop - it.clientHeight < 60)(document.querySelector(box))"
    tab.wait(at_end, box)

    tab.chat.hover()
    while tab.page.evaluate(f"document.querySelector('{box}').scrollTop") > 0:
        tab.page.mouse.wheel(0, -2000)
    expect(tab.button("Jump to now")).to_be_visible()
    watch_top(tab, ".tool")
    height = tab.page.evaluate(f"document.querySelector('{box}').scrollHeight")
    tab.wait("height => document.querySelector('.chat-scroll').scrollHeight > height + 300", height)
    assert spread(tab) <= 1

    tab.button("Jump to now").click()
    tab.wait(at_end, box)
    expect(tab.button("Jump to now")).to_have_count(0)
    grown = tab.page.evaluate(f"document.querySelector('{box}').scrollTop")
    tab.wait("top => document.querySelector('.chat-scroll').scrollTop > top + 100", grown)
    stage.open_gate("enough")
    tab.expect_end()
    expect(tab.chat).to_contain_text("That was all.")


def test_failed_run_shows_its_error(tab: Tab, stage: Stage) -> None:
    tab.begin("scene crash")
    expect(tab.page.get_by_text("The run failed", exact=True)).to_be_visible()
    expect(tab.page.locator(".run-failure")).to_contain_text("the wheel came off")
    expect(tab.button("Stop")).to_have_count(0)


def watch_top(tab: Tab, selector: str) -> None:
    """Record the position of an element in each frame."""
    tab.page.evaluate(
        """selector => {
          const element = document.querySelector(selector);
          const tops = (window.tops = []);
          const note = () => {
            tops.push(element.isConnected ? element.getBoundingClientRect().top : Number.NaN);
            if (window.tops === tops) requestAnimationFrame(note);
          };
          note();
        }""",
        selector,
    )


def spread(tab: Tab) -> float:
    """How far the element has moved."""
    tab.wait("() => window.tops.length > 3")
    tops = tab.page.evaluate("window.tops.splice(0)")
    return max(tops) - min(tops)


def colour_of(locator: Locator) -> str:
    return locator.evaluate("element => getComputedStyle(element).color")
