"""The list of conversations, and links into them."""

import json
import re
from pathlib import Path

import pytest
from playwright.sync_api import Locator, expect

from tests.system.page.server import Stage
from tests.system.page.tab import NewTab, Tab


def rows(tab: Tab, title: str) -> Locator:
    return tab.page.get_by_role("navigation", name="Conversations").get_by_role("link").filter(has_text=title)


def menu(tab: Tab, title: str, item: str) -> None:
    rows(tab, title).hover()
    tab.button(f"More for {title}").click()
    tab.page.get_by_role("menuitem", name=item).click()


def test_new_conversation_is_listed_and_found(tab: Tab) -> None:
    tab.begin("zebras in the list")
    tab.expect_end()
    expect(rows(tab, "zebras in the list")).to_have_attribute("aria-current", "page")
    tab.button("New").click()
    expect(tab.page.get_by_role("heading", name="Watch an agent work")).to_be_visible()
    tab.ask("okapis in the list")
    tab.expect_end()
    tab.page.get_by_label("Search conversations").fill("zebras")
    expect(rows(tab, "okapis")).to_have_count(0)
    rows(tab, "zebras").click()
    expect(tab.chat).to_contain_text("You said: zebras in the list")


def test_list_shows_a_waiting_approval_at_once(tab: Tab, stage: Stage) -> None:
    # The list also polls every few seconds, which this test disables.
    tab.page.add_init_script(
        "const later = setTimeout; setTimeout = (run, ms, ...more) => (ms === 4000 ? 0 : later(run, ms, ...more));"
    )
    tab.begin("scene hesitant")
    row = rows(tab, "scene hesitant").first
    expect(row.get_by_role("img", name="running")).to_be_visible()
    stage.open_gate("search")
    expect(row.get_by_role("img", name="waiting for you")).to_be_visible()
    tab.button("Approve").click()
    tab.expect_end()
    expect(row.get_by_role("img", name="done")).to_be_visible()


def test_rename_changes_the_title(tab: Tab, stage: Stage) -> None:
    tab.begin("to be renamed")
    tab.expect_end()
    menu(tab, "to be renamed", "Rename")
    tab.page.get_by_label("Title").fill("Of kites")
    tab.page.keyboard.press("Enter")
    expect(rows(tab, "Of kites")).to_be_visible()
    expect(tab.page.get_by_role("heading", level=1)).to_have_text("Of kites")
    tab.page.get_by_role("heading", level=1).get_by_role("button").click()
    tab.page.get_by_label("Title").fill("Of dragons")
    tab.page.keyboard.press("Enter")
    expect(rows(tab, "Of dragons")).to_be_visible()
    tab.page.reload()
    expect(rows(tab, "Of dragons")).to_be_visible()
    assert stage.get(f"/sessions/{tab.session_id}")["title"] == "Of dragons"
    expect(tab.page).to_have_title(re.compile("Of dragons"))


def test_delete_asks_first_and_updates_other_tabs(new_tab: NewTab, stage: Stage) -> None:
    tab = new_tab().begin("to be deleted")
    tab.expect_end()
    other = new_tab(fresh=True).open(f"#/s/{tab.session_id}")
    expect(other.chat).to_contain_text("You said: to be deleted")
    menu(tab, "to be deleted", "Delete")
    asking = tab.page.get_by_role("alertdialog")
    asking.get_by_role("button", name="Cancel").click()
    expect(rows(tab, "to be deleted")).to_be_visible()
    menu(tab, "to be deleted", "Delete")
    asking.get_by_role("button", name="Delete").click()
    expect(tab.page.get_by_role("heading", name="Watch an agent work")).to_be_visible()
    expect(rows(tab, "to be deleted")).to_have_count(0)
    expect(other.page.get_by_text("This conversation was deleted")).to_be_visible()
    expect(other.chat).to_contain_text("You said: to be deleted")


def test_export_as_markdown_and_as_log(tab: Tab, stage: Stage, tmp_path: Path) -> None:
    stage.open_gate("search", "answer")
    tab.begin("export scene tools")
    tab.expect_end()
    with tab.page.expect_download() as download:
        menu(tab, "export scene tools", "Export as Markdown")
    assert download.value.suggested_filename.endswith(".md")
    download.value.save_as(tmp_path / "it.md")
    text = (tmp_path / "it.md").read_text()
    assert "export scene tools" in text and "Bees **dance** to tell the way." in text and "search_docs" in text
    with tab.page.expect_download() as download:
        menu(tab, "export scene tools", "Export as JSON lines")
    download.value.save_as(tmp_path / "it.jsonl")
    lines = [json.loads(line) for line in (tmp_path / "it.jsonl").read_text().splitlines()]
    kinds = [line["event"]["kind"] for line in lines if "event" in line]
    assert kinds[0] == "run_started" and kinds[-1] == "run_finished" and kinds.count("tool_finished") == 3


@pytest.mark.requirement("page-links")
def test_links_lead_to_a_session_a_turn_and_an_item(new_tab: NewTab) -> None:
    tab = new_tab().begin("scene parallel")
    tab.expect_end()
    session = f"#/s/{tab.session_id}"
    tab.ask("a second turn")
    expect(tab.chat).to_contain_text("You said: a second turn")
    tab.expect_end()
    tab.pick_pane("Timeline")
    tab.page.get_by_label("Turn", exact=True).select_option("0")
    turn = tab.page.url
    tab.page.get_by_role("treeitem").filter(has_text="small_3").first.click()
    expect(tab.tool("small_3")).to_be_in_viewport()
    item = tab.page.url
    assert item.startswith(turn) and len(item) > len(turn)

    elsewhere = new_tab(fresh=True)
    elsewhere.open(session)
    expect(elsewhere.chat.get_by_text("You said: a second turn")).to_be_in_viewport()
    elsewhere = new_tab(fresh=True)
    elsewhere.open(turn.removeprefix(f"{tab.url}/"))
    expect(elsewhere.chat.get_by_text("scene parallel", exact=True)).to_be_in_viewport()
    elsewhere = new_tab(fresh=True)
    elsewhere.open(item.removeprefix(f"{tab.url}/"))
    expect(elsewhere.tool("small_3")).to_be_in_viewport(ratio=1)
    expect(elsewhere.line("small_3")).to_have_attribute("aria-expanded", "true")


def test_link_to_a_missing_session_shows_not_found(tab: Tab, stage: Stage) -> None:
    tab.forgive("404")
    tab.open("#/s/there-is-no-such-session")
    expect(tab.page.get_by_role("heading", name="Conversation not found")).to_be_visible()
    tab.button("New conversation").click()
    expect(tab.field).to_be_enabled()
    ids = [one["session_id"] for one in stage.get("/sessions")["sessions"]]
    assert "there-is-no-such-session" not in ids


def test_back_and_forward_change_the_session(tab: Tab) -> None:
    tab.begin("the first of two")
    tab.expect_end()
    tab.button("New").click()
    tab.ask("the second of two")
    tab.expect_end()
    tab.page.go_back()
    expect(tab.page.get_by_role("heading", name="Watch an agent work")).to_be_visible()
    tab.page.go_back()
    expect(tab.chat).to_contain_text("You said: the first of two")
