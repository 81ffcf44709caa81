"""After a reload, a cut connection or a restart of the server, the page shows the exact state again."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Locator, Route, expect

from tests.support.wait import wait_for
from tests.system.page.cuttable_connection import Wire
from tests.system.page.server import AGENTS_FILE, Stage, staged
from tests.system.page.tab import BROKEN_LINK, NewTab, Tab


@pytest.fixture
def wire(stage: Stage) -> Iterator[Wire]:
    with Wire(stage.port) as wire:
        yield wire


TALL = {"width": 1440, "height": 4000}
"""Only visible rows are in the document, and these tests compare all of them."""


def chat_text(tab: Tab) -> str:
    """The complete text of the conversation."""
    return tab.chat.inner_text()


def banner(tab: Tab) -> Locator:
    return tab.page.get_by_text(re.compile(r"Disconnected since \d"))


def same(one: Tab, other: Tab) -> None:
    for tab in (one, other):
        tab.expect_end()
        tab.show_steps()
    wait_for("the same conversation in both tabs", lambda: chat_text(one) == chat_text(other))


@pytest.mark.requirement("page-reconnect")
def test_reload_during_a_run_shows_the_same(new_tab: NewTab, stage: Stage) -> None:
    tab = new_tab().begin("scene tools")
    expect(tab.line("search_docs").get_by_role("img", name="running")).to_be_visible()
    undisturbed = new_tab(fresh=True).open(f"#/s/{tab.session_id}")
    expect(undisturbed.tool("search_docs")).to_be_visible()
    tab.page.reload()
    expect(tab.line("search_docs").get_by_role("img", name="running")).to_be_visible()
    expect(tab.page.get_by_role("article", name="You asked")).to_have_count(1)
    expect(tab.tool("search_docs")).to_have_count(1)
    stage.open_gate("search")
    expect(tab.tool("read_all")).to_be_visible()
    tab.page.reload()
    expect(tab.tool("read_all")).to_be_visible()
    stage.open_gate("answer")
    same(tab, undisturbed)


def test_reload_during_a_streaming_text_shows_the_same(new_tab: NewTab, stage: Stage) -> None:
    tab = new_tab(viewport=TALL).begin("scene words")
    undisturbed = new_tab(fresh=True, viewport=TALL).open(f"#/s/{tab.session_id}")
    for word in ("word20 ", "word60 ", "word120 "):
        expect(tab.chat).to_contain_text(word)
        tab.page.reload()
        expect(tab.chat).to_contain_text(word)
        assert chat_text(tab).count("The first words stand.") == 1
    stage.open_gate("enough")
    same(tab, undisturbed)


@pytest.mark.requirement("page-reconnect")
def test_second_tab_is_live_and_can_act(new_tab: NewTab, stage: Stage) -> None:
    tab = new_tab().begin("scene question")
    other = new_tab().open(f"#/s/{tab.session_id}")
    other.button("Approve").click()
    expect(tab.chat).to_contain_text("It was sent to ann.")
    expect(tab.button("Approve")).to_have_count(0)
    other.ask("from the other tab")
    expect(tab.chat).to_contain_text("You said: from the other tab")
    same(tab, other)


@pytest.mark.requirement("page-reconnect")
def test_page_reconnects_after_the_server_was_killed(new_tab: NewTab, tmp_path: Path) -> None:
    with staged(tmp_path / "killed", f"{AGENTS_FILE}:stage") as stage:
        tab = new_tab(address=stage.url).begin("scene patient")
        tab.forgive(BROKEN_LINK)
        expect(tab.line("wait_long").get_by_role("img", name="running")).to_be_visible()
        run_id = stage.run_of(tab.session_id)["run_id"]
        stage.kill()
        expect(banner(tab)).to_be_visible()
        expect(tab.tool("wait_long")).to_be_visible()
        tab.field.fill("written in the dark")
        tab.field.press("Enter")
        stage.open_gate("patience")
        stage.start()
        expect(banner(tab)).to_have_count(0)
        expect(tab.page.get_by_text("Interrupted", exact=True)).to_be_visible()
        expect(tab.chat).to_contain_text("You said: written in the dark")
        expect(tab.page.get_by_text("It is over.")).to_have_count(0)
        assert stage.get(f"/runs/{run_id}")["state"] == "failed"
        assert stage.get(f"/sessions/{tab.session_id}")["turns"] == 2
        tab.page.reload()
        expect(tab.chat).to_contain_text("You said: written in the dark")
        expect(tab.page.get_by_role("article", name="You asked")).to_have_count(2)


@pytest.mark.requirement("page-reconnect")
def test_cut_connection_during_a_text_loses_and_repeats_nothing(new_tab: NewTab, stage: Stage, wire: Wire) -> None:
    tab = new_tab(address=wire.url, viewport=TALL).begin("scene words")
    tab.forgive(BROKEN_LINK)
    undisturbed = new_tab(fresh=True, viewport=TALL).open(f"#/s/{tab.session_id}")
    for word in ("word30 ", "word90 ", "word150 "):
        expect(tab.chat).to_contain_text(word)
        wire.cut()
    expect(tab.chat).to_contain_text("word220 ")
    stage.open_gate("enough")
    same(tab, undisturbed)
    assert chat_text(tab).count("word91 ") == 1


@pytest.mark.requirement("page-sends-once")
def test_message_written_while_disconnected_is_sent_once(new_tab: NewTab, stage: Stage, wire: Wire) -> None:
    tab = new_tab(address=wire.url).begin("hello")
    tab.forgive(BROKEN_LINK)
    tab.expect_end()
    tab.context.set_offline(True)
    wire.part()
    expect(banner(tab)).to_be_visible()
    tab.shot("never_lost/disconnected")
    since = banner(tab).inner_text().partition(" (")[0]
    tab.ask("are you there?")
    expect(tab.page.get_by_role("article", name="Message that waits")).to_contain_text("are you there?")
    wire.join()
    assert banner(tab).inner_text().startswith(since)
    tab.context.set_offline(False)
    expect(banner(tab)).to_have_count(0)
    expect(tab.chat).to_contain_text("You said: are you there?")
    expect(tab.page.get_by_role("article", name="Message that waits")).to_have_count(0)
    wire.cut()
    tab.ask("and now?")
    expect(tab.chat).to_contain_text("You said: and now?")
    tab.expect_end()
    assert stage.get(f"/sessions/{tab.session_id}")["turns"] == 3
    assert chat_text(tab).count("You said: are you there?") == 1


@pytest.mark.requirement("page-sends-once")
def test_unsent_message_survives_a_reload(new_tab: NewTab, stage: Stage, wire: Wire) -> None:
    tab = new_tab(address=wire.url).begin("hello")
    tab.forgive(BROKEN_LINK)
    tab.expect_end()
    session = tab.session_id
    wire.part()
    expect(banner(tab)).to_be_visible()
    tab.ask("kept for later")
    expect(tab.page.get_by_role("article", name="Message that waits")).to_be_visible()
    tab.page.goto("about:blank")
    wire.join()
    tab.open(f"#/s/{session}")
    expect(tab.chat).to_contain_text("You said: kept for later")
    tab.expect_end()
    assert stage.get(f"/sessions/{session}")["turns"] == 2


def test_pane_whose_code_could_not_be_loaded_appears_when_the_connection_is_back(new_tab: NewTab, stage: Stage) -> None:
    tab = new_tab()
    tab.forgive("ERR_FAILED")
    attempts: list[str] = []

    def fail_twice(route: Route) -> None:
        attempts.append(route.request.url)
        if len(attempts) <= 2:
            route.abort()
        else:
            route.continue_()

    tab.page.route(re.compile(r"/assets/TerminalPane-.*\.js"), fail_twice)
    stage.open_gate("ran", "second", "third", "printed")
    tab.begin("scene code")
    tab.pick_pane("Terminal")
    expect(tab.page.locator(".xterm-rows")).to_contain_text("the last line")
    assert len(attempts) == 3
