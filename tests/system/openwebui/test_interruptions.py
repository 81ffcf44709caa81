"""Stop, reloads, lost connections and restarts: what was shown stays, and the next turn works."""

from playwright.sync_api import expect

from tests.system.openwebui.chat import Chat
from tests.system.openwebui.conftest import Stage
from tests.system.openwebui.processes import wait_for


def works_again(tab: Chat) -> None:
    tab.say("still there?")
    tab.expect_text("user: still there?")
    tab.expect_end()


def test_stop_stops_the_agent_on_the_server(stage: Stage, tab: Chat) -> None:
    tab.open().say("scene one tool")
    expect(tab.row("Executing search_docs")).to_be_visible()
    tab.stop()
    wait_for("the run to be cancelled", lambda: stage.run_of(tab.chat_id)["state"] == "cancelled")
    expect(tab.status).to_have_text("Stopped")
    tab.expect_end()
    tab.expect_text("Let me look.")
    works_again(tab)


def test_a_reload_in_the_middle_shows_the_same_and_goes_on(stage: Stage, tab: Chat) -> None:
    tab.open().say("scene one tool")
    expect(tab.row("Executing search_docs")).to_be_visible()
    tab.reload()
    expect(tab.row("Executing search_docs")).to_be_visible()
    tab.expect_text("Let me look.")
    stage.open_gate("search")
    expect(tab.row("View Result from search_docs")).to_be_visible()
    stage.open_gate("answer")
    tab.expect_text("That is all.")
    tab.expect_end()
    assert tab.answer.inner_text().count("Let me look.") == 1


def test_a_closed_tab_stops_nothing(stage: Stage, tab: Chat) -> None:
    other = tab.another()
    other.open().say("scene one tool")
    expect(other.row("Executing search_docs")).to_be_visible()
    address = other.page.evaluate("location.href")
    other.page.close()
    stage.open_gate("search")
    stage.open_gate("answer")
    tab.page.goto(address)
    tab.expect_text("That is all.")


def test_after_a_restart_of_the_server_what_was_shown_stays_and_the_next_turn_works(stage: Stage, tab: Chat) -> None:
    tab.open().say("scene one tool")
    expect(tab.row("Executing search_docs")).to_be_visible()
    stage.limelight.kill()
    expect(tab.status).to_contain_text("reconnecting")
    stage.limelight.start()
    tab.expect_end()
    expect(tab.status).to_contain_text("Failed")
    for _ in range(2):
        tab.expect_text("Let me look.")
        tab.row("search_docs").click()
        tab.expect_text("Error: the server stopped")
        tab.expect_text("Interrupted: the server stopped")
        tab.reload()
    works_again(tab)


def test_a_server_that_is_down_says_so(stage: Stage, tab: Chat) -> None:
    stage.valves(RECONNECT_SECONDS=0)
    stage.limelight.kill()
    try:
        tab.open().say("hello")
        expect(tab.page.locator("body")).to_contain_text("cannot be reached")
        tab.expect_end()
        expect(tab.status).to_contain_text("Failed")
    finally:
        stage.limelight.start()
        stage.valves(RECONNECT_SECONDS=120)
    works_again(tab)


def test_a_wrong_key_says_which_valve_to_set(stage: Stage, tab: Chat) -> None:
    key = stage.api("GET", "/api/v1/functions/id/deep_agent_pipe/valves")["API_KEY"]
    stage.valves(API_KEY="wrong")
    try:
        tab.open().say("hello")
        expect(tab.page.locator("body")).to_contain_text("set the valve API_KEY")
    finally:
        stage.valves(API_KEY=key)
