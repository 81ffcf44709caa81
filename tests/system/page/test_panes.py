"""The right side: code, terminal and timeline, which follow the agent until the user selects one."""

import re
from pathlib import Path

import pytest
from playwright.sync_api import FloatRect, Locator, expect

from tests.system.page.server import Stage
from tests.system.page.tab import NewTab, Tab


@pytest.mark.requirement("page-side")
def test_side_follows_the_agent_until_a_pane_is_selected(tab: Tab, stage: Stage) -> None:
    tab.begin("scene code")
    expect(tab.pane("Code")).to_have_attribute("aria-selected", "true")
    expect(tab.page.locator(".cm-content")).to_contain_text("import math")
    tab.shot("panes/code")
    stage.open_gate("ran")
    expect(tab.pane("Terminal")).to_have_attribute("aria-selected", "true")
    expect(screen(tab)).to_contain_text("3.14159")

    tab.pick_pane("Timeline")
    stage.open_gate("second", "third")
    expect(tab.page.get_by_role("treeitem").filter(has_text="for n in range(300)")).to_be_visible()
    expect(tab.pane("Timeline")).to_have_attribute("aria-selected", "true")


@pytest.mark.requirement("page-side")
def test_side_stays_when_a_step_is_selected(tab: Tab, stage: Stage) -> None:
    tab.begin("scene steps")
    expect(tab.pane("Code")).to_have_attribute("aria-selected", "true")
    expect(tab.button("step 2 of 2")).to_be_visible()
    tab.chat.focus()
    tab.page.keyboard.press("[")
    expect(tab.page.locator(".cm-content")).to_contain_text("first = 1")
    tab.line("python").last.click()
    stage.open_gate("ran")
    expect(tab.chat).to_contain_text("in print")
    expect(tab.pane("Code")).to_have_attribute("aria-selected", "true")
    expect(tab.page.locator(".cm-content")).to_contain_text("first = 1")


def test_code_pane_has_every_version_with_its_output(new_tab: NewTab, stage: Stage, tmp_path: Path) -> None:
    stage.open_gate("ran", "second")
    tab = new_tab(permissions=["clipboard-read", "clipboard-write"]).begin("scene code")
    tab.pick_pane("Code")
    shown, output = tab.page.locator(".cm-content"), tab.page.get_by_role("region", name="Output", exact=True)
    expect(tab.button("step 2 of 2")).to_be_visible()
    expect(shown).to_contain_text("print('in colours')")
    expect(output).to_contain_text("red and green")

    stage.open_gate("third", "printed")
    expect(tab.button("step 3 of 3")).to_be_visible()
    expect(output).to_contain_text("the last line")
    tab.button("Previous step").click()
    tab.button("Previous step").click()
    expect(tab.button("step 1 of 3")).to_be_visible()
    expect(shown).to_contain_text("import math")
    expect(output).to_contain_text("3.14159")
    tab.button("Copy the code").click()
    tab.expect_clipboard("import math\nprint(math.pi)")
    with tab.page.expect_download() as download:
        tab.page.get_by_role("button", name="Download step").click()
    assert download.value.suggested_filename.endswith(".py")
    download.value.save_as(tmp_path / "code.py")
    assert (tmp_path / "code.py").read_text() == "import math\nprint(math.pi)"

    tab.button("step 1 of 3").click()
    tab.page.get_by_role("menuitemradio").filter(has_text="in colours").click()
    expect(shown).to_contain_text("print('in colours')")
    tab.button("Follow").click()
    expect(tab.button("step 3 of 3")).to_be_visible()


def test_selected_version_stays(tab: Tab, stage: Stage) -> None:
    stage.open_gate("ran", "second")
    tab.begin("scene code")
    tab.pick_pane("Code")
    tab.button("Previous step").click()
    expect(tab.button("step 1 of 2")).to_be_visible()
    stage.open_gate("third")
    expect(tab.button("step 1 of 3")).to_be_visible()
    expect(tab.page.locator(".cm-content")).to_contain_text("import math")


def test_terminal_shows_colours_and_follows_its_end(tab: Tab, stage: Stage) -> None:
    stage.open_gate("ran", "second")
    tab.begin("scene code")
    tab.pick_pane("Terminal")
    red, green = (screen(tab).locator("span", has_text=re.compile(f"^{word}$")) for word in ("red", "green"))
    expect(red).to_be_visible()
    assert reddish(red) and not reddish(green)
    tab.shot("panes/terminal")

    stage.open_gate("third")
    expect(screen(tab)).to_contain_text("line 299")
    terminal = tab.page.get_by_role("region", name="Terminal output")
    terminal.focus()
    for _ in range(3):
        terminal.press("PageUp")
    expect(screen(tab)).not_to_contain_text("line 299")
    now = tab.page.locator(".terminal-now")
    expect(now).to_be_visible()
    stage.open_gate("printed")
    tab.expect_end()
    expect(now).to_be_visible()
    expect(screen(tab)).not_to_contain_text("the last line")
    now.click()
    expect(screen(tab)).to_contain_text("the last line")
    expect(now).to_have_count(0)


def test_timeline_bars_match_the_durations(tab: Tab) -> None:
    tab.begin("scene parallel")
    expect(tab.page.locator(".session-clock .state-done")).to_be_visible()  # the end may be below what is seen
    tab.pick_pane("Timeline")
    tree = tab.page.get_by_role("tree")
    first, second = bar(tree, "first_call"), bar(tree, "second_call")
    assert first["x"] < second["x"] + second["width"] and second["x"] < first["x"] + first["width"]
    tree.focus()
    tab.page.keyboard.press("End")
    last = bar(tree, "last_call")
    assert last["x"] >= first["x"] + first["width"] - 1


def test_timeline_has_a_bar_and_the_cost_of_each_sub_agent(tab: Tab, stage: Stage) -> None:
    stage.open_gate("helpers")
    tab.begin("scene helpers")
    tab.expect_end()
    tab.pick_pane("Timeline")
    for who in ("reader", "critic", "counter", "read_page", "count_bees"):
        assert bar(tab.page.get_by_role("tree"), who)["width"] > 0
    agents = tab.page.get_by_role("table", name="Time, tools and tokens of each agent")
    expect(agents.get_by_role("row").filter(has_text="reader")).to_contain_text(re.compile(r"\d+(\.\d)? m?s"))
    expect(agents.get_by_role("row")).to_have_count(6)


def test_click_in_the_timeline_scrolls_to_the_message(tab: Tab) -> None:
    tab.begin("scene parallel")
    expect(tab.page.locator(".session-clock .state-done")).to_be_visible()  # the end may be below what is seen
    tab.pick_pane("Timeline")
    expect(tab.tool("second_call")).to_have_count(0)
    tab.page.get_by_role("treeitem").filter(has_text="second_call").click()
    expect(tab.tool("second_call")).to_be_in_viewport(ratio=1)
    expect(tab.tool("second_call")).to_have_class(re.compile("focused"))
    expect(tab.line("second_call")).to_have_attribute("aria-expanded", "true")
    assert re.search(r"#/s/[^/]+/run_[^/]+/\d+$", tab.page.url)


def test_files_pane_lists_all_files_of_a_conversation(tab: Tab, tmp_path: Path) -> None:
    tab.begin("scene files")
    tab.expect_end()
    tab.pick_pane("Files")
    panel = tab.page.get_by_role("tabpanel")
    expect(panel.get_by_text("dot.png").first).to_be_visible()
    expect(panel.get_by_text("notes.txt").first).to_be_visible()


def screen(tab: Tab) -> Locator:
    return tab.page.locator(".xterm-rows")


def reddish(locator: Locator) -> bool:
    colour = locator.evaluate("element => getComputedStyle(element).color")
    red, green, blue = (int(part) for part in re.findall(r"\d+", colour)[:3])
    return red > green and red > blue


def bar(tree: Locator, name: str) -> FloatRect:
    row = tree.get_by_role("treeitem").filter(has=tree.page.get_by_text(name, exact=True))
    box = row.locator(".timeline-bar").first.bounding_box()
    assert box is not None
    return box
