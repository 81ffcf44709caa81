"""axe-core finds nothing serious, in any state of the page."""

import pytest
from playwright.sync_api import expect

from tests.system.page.server import Stage
from tests.system.page.tab import NewTab, Tab

LOOKS = {
    "light": {},
    "dark": {"color_scheme": "dark"},
    "narrow": {"viewport": {"width": 380, "height": 800}},
}


@pytest.fixture(params=LOOKS)
def looked_at(request: pytest.FixtureRequest, new_tab: NewTab) -> Tab:
    return new_tab(**LOOKS[request.param])


def test_conversation_is_accessible_in_each_theme(looked_at: Tab, stage: Stage) -> None:
    tab = looked_at.open()
    expect(tab.field).to_be_visible()
    expect(tab.page.get_by_role("list", name="Try stage")).to_be_visible()
    assert tab.axe() == [], "the empty state"
    tab.begin("scene tools")
    expect(tab.tool("search_docs")).to_be_visible()
    tab.page.locator(".thought button").click()
    assert tab.axe() == [], "a running tool"
    stage.open_gate("search", "answer")
    tab.expect_end()
    tab.show_steps()
    for name in ("search_docs", "read_all"):
        tab.line(name).click()
    assert tab.axe() == [], "open rows"


def test_approvals_errors_and_sub_agents_are_accessible(tab: Tab, stage: Stage) -> None:
    tab.begin("scene question")
    expect(tab.button("Approve")).to_be_visible()
    assert tab.axe() == [], "a question"
    tab.button("Edit").click()
    assert tab.axe() == [], "a question that is edited"
    tab.button("Approve with changes").click()
    tab.expect_end()
    tab.ask("scene crash")
    expect(tab.page.get_by_text("The run failed", exact=True)).to_be_visible()
    tab.ask("scene helpers")
    expect(tab.lane("counter")).to_be_visible()
    assert tab.axe() == [], "an error and lanes"


def test_panes_are_accessible(tab: Tab, stage: Stage) -> None:
    stage.open_gate("ran", "second")
    tab.begin("scene code")
    for pane, shown in (("Code", ".cm-content"), ("Terminal", ".xterm-rows"), ("Timeline", "[role=treeitem]")):
        tab.pick_pane(pane)
        expect(tab.page.locator(shown).first).to_be_visible()
        assert tab.axe() == [], pane
    tab.ask("scene files")
    stage.open_gate("third", "printed")
    tab.pick_pane("Files")
    expect(tab.page.get_by_role("tabpanel").get_by_text("dot.png").first).to_be_visible()
    assert tab.axe() == [], "Files"


def test_dialogs_and_menus_are_accessible(tab: Tab) -> None:
    tab.begin("about dialogs")
    tab.expect_end()
    tab.page.keyboard.press("Control+k")
    expect(tab.page.get_by_role("option").first).to_be_visible()
    assert tab.axe() == [], "the palette"
    tab.page.keyboard.press("Escape")
    tab.chat.focus()
    tab.page.keyboard.press("?")
    expect(tab.page.get_by_role("dialog", name="Keys")).to_be_visible()
    assert tab.axe() == [], "the keys"
    tab.page.keyboard.press("Escape")
    tab.page.get_by_role("link", name="about dialogs").hover()
    tab.button("More for about dialogs").click()
    expect(tab.page.get_by_role("menu")).to_be_visible()
    assert tab.axe() == [], "a menu"
    tab.page.get_by_role("menuitem", name="Delete").click()
    expect(tab.page.get_by_role("alertdialog")).to_be_visible()
    assert tab.axe() == [], "a question before something is deleted"
    tab.page.keyboard.press("Escape")
    tab.chat.focus()
    tab.page.keyboard.press("/")
    tab.page.get_by_role("textbox", name="Search in steps and results").fill("dialogs")
    assert tab.axe() == [], "a search"
