"""Light and dark, keyboard only, and narrow screens."""

import pytest
from playwright.sync_api import Locator, expect

from tests.system.page.server import Stage
from tests.system.page.tab import NewTab, Tab


def brightness(tab: Tab) -> float:
    return tab.page.evaluate(
        "getComputedStyle(document.body).backgroundColor"
        ".match(/[\\d.]+/g).slice(0, 3).map(Number).reduce((one, other) => one + other)"
    )


def test_dark_theme_can_be_chosen_and_is_remembered(new_tab: NewTab) -> None:
    tab = new_tab(color_scheme="light").open()
    expect(tab.field).to_be_visible()
    light = brightness(tab)
    tab.button("Light or dark: As the system").click()
    tab.page.get_by_role("menuitemradio", name="Dark").click()
    expect(tab.page.locator("html")).to_have_attribute("data-theme", "dark")
    assert brightness(tab) < 200 < light
    tab.page.reload()
    expect(tab.field).to_be_visible()
    assert brightness(tab) < 200
    tab.button("Light or dark: Dark").click()
    tab.page.get_by_role("menuitemradio", name="Light").click()
    assert brightness(tab) == light


def test_page_uses_the_theme_of_the_system(new_tab: NewTab) -> None:
    tab = new_tab(color_scheme="dark").open()
    expect(tab.field).to_be_visible()
    assert brightness(tab) < 200


def walk_to(tab: Tab, target: Locator, key: str = "Tab", most: int = 80) -> None:
    """Press Tab until the element has the focus."""
    for _ in range(most):
        if target.evaluate_all("all => all.includes(document.activeElement)"):
            return
        tab.page.keyboard.press(key)
    raise AssertionError(f"not reached by {most} times {key}")


@pytest.mark.requirement("page-keyboard")
def test_page_can_be_used_by_keyboard(tab: Tab, stage: Stage) -> None:
    """From load to asking, opening a row, the panes, the palette and the list of keys, without a mouse."""
    keys = tab.page.keyboard
    stage.open_gate("search")
    tab.open()
    expect(tab.field).to_be_focused()
    keys.type("scene tools")
    keys.press("Enter")
    expect(tab.tool("read_all")).to_be_visible()
    expect(tab.field).to_be_focused()
    walk_to(tab, tab.line("search_docs"), "Shift+Tab")
    outline = tab.line("search_docs").evaluate("element => getComputedStyle(element).outlineStyle")
    assert outline != "none"
    keys.press("Enter")
    expect(tab.tool("search_docs")).to_contain_text("Bees dance on page 7.")
    keys.press("g")
    keys.press("l")
    expect(tab.pane("Timeline")).to_have_attribute("aria-selected", "true")
    keys.press("g")
    keys.press("t")
    expect(tab.pane("Terminal")).to_have_attribute("aria-selected", "true")
    walk_to(tab, tab.pane("Terminal"))
    keys.press("ArrowLeft")
    expect(tab.pane("Code")).to_have_attribute("aria-selected", "true")
    keys.press("?")
    dialog = tab.page.get_by_role("dialog", name="Keys")
    expect(dialog).to_contain_text("Conversations and commands")
    for group in ("In the code", "In the terminal", "In the timeline", "In the list of conversations"):
        expect(dialog.get_by_role("heading", name=group)).to_be_attached()
    keys.press("Escape")
    expect(dialog).to_have_count(0)
    keys.press("Control+k")
    expect(tab.page.get_by_role("combobox")).to_be_focused()
    keys.type("show files")
    keys.press("Enter")
    expect(tab.pane("Files")).to_have_attribute("aria-selected", "true")
    keys.press("Control+k")
    keys.type("new conversation with second")
    keys.press("Enter")
    expect(tab.page.get_by_role("heading", name="Watch an agent work")).to_be_visible()
    expect(tab.field).to_be_focused()


def test_approval_can_be_decided_by_keyboard(tab: Tab) -> None:
    tab.open()
    expect(tab.field).to_be_focused()
    tab.page.keyboard.type("scene question")
    expect(tab.button("Send")).to_be_enabled()
    tab.page.keyboard.press("Enter")
    approve = tab.button("Approve")
    expect(approve).to_be_visible()
    walk_to(tab, approve, "Shift+Tab")
    tab.page.keyboard.press("Enter")
    expect(tab.chat).to_contain_text("It was sent to ann.")


@pytest.mark.requirement("page-narrow")
def test_page_fits_in_380_pixels(new_tab: NewTab, stage: Stage) -> None:
    stage.open_gate("search", "helpers")
    tab = new_tab(viewport={"width": 380, "height": 800}).open()
    expect(tab.field).to_be_visible()
    fits(tab)
    tab.begin("scene tools")
    expect(tab.tool("read_all")).to_be_visible()
    tab.line("search_docs").click()
    fits(tab)
    parts = tab.page.get_by_role("navigation", name="Parts of the conversation")
    for name in ("Code", "Terminal", "Timeline", "Files", "Chat"):
        part = parts.get_by_role("button", name=name)
        expect(part).to_be_in_viewport(ratio=1)
        part.click()
        expect(part).to_have_attribute("aria-current", "page")
        fits(tab)
    expect(tab.button("Stop")).to_be_in_viewport(ratio=1)
    stage.open_gate("answer")
    tab.expect_end()
    tab.ask("scene question")
    expect(tab.button("Approve")).to_be_in_viewport(ratio=1)
    expect(tab.button("Reject")).to_be_in_viewport(ratio=1)
    fits(tab)
    tab.button("Approve").click()
    tab.expect_end()
    tab.ask("scene helpers")
    tab.expect_end()
    tab.show_steps()
    fits(tab)
    tab.button("Search in steps and results").click()
    fits(tab)
    tab.button("Close search").click()
    tab.button("Conversations").click()
    drawer = tab.page.get_by_role("dialog", name="Conversations")
    for name in ("New", "Light or dark: As the system"):
        expect(drawer.get_by_role("button", name=name, exact=True)).to_be_in_viewport(ratio=1)
    fits(tab)
    drawer.get_by_role("button", name="New", exact=True).click()
    expect(tab.page.get_by_role("heading", name="Watch an agent work")).to_be_visible()


def fits(tab: Tab) -> None:
    wide = tab.page.evaluate("[document.documentElement.scrollWidth, document.body.scrollWidth]")
    assert max(wide) <= 380, wide
