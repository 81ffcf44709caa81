"""Stop, reloads, lost connections and restarts: the chat keeps the message, and the next turn works."""

import pytest
from playwright.sync_api import expect

from tests.support.wait import wait_for
from tests.system.openwebui.chat import Chat
from tests.system.openwebui.conftest import Environment


def expect_next_turn(tab: Chat) -> None:
    tab.send("still there?")
    tab.expect_text("user: still there?")
    tab.expect_idle()


@pytest.mark.requirement("pipe-stop")
def test_stop_cancels_the_run_on_the_server(environment: Environment, tab: Chat) -> None:
    tab.open().send("script one tool")
    expect(tab.row("Executing search_docs")).to_be_visible()
    tab.stop()
    wait_for("the run to be cancelled", lambda: environment.latest_run(tab.chat_id)["state"] == "cancelled")
    expect(tab.status).to_have_text("Stopped")
    tab.expect_idle()
    tab.expect_text("Let me look.")
    expect_next_turn(tab)


@pytest.mark.requirement("pipe-reload")
def test_reload_during_a_run_shows_the_same_message_and_continues(environment: Environment, tab: Chat) -> None:
    tab.open().send("script one tool")
    expect(tab.row("Executing search_docs")).to_be_visible()
    tab.reload()
    expect(tab.row("Executing search_docs")).to_be_visible()
    tab.expect_text("Let me look.")
    environment.open_gate("search")
    expect(tab.row("View Result from search_docs")).to_be_visible()
    environment.open_gate("answer")
    tab.expect_text("That is all.")
    tab.expect_idle()
    assert tab.answer.inner_text().count("Let me look.") == 1


@pytest.mark.requirement("pipe-reload")
def test_closed_tab_does_not_stop_the_run(environment: Environment, tab: Chat) -> None:
    other = tab.open_tab()
    other.open().send("script one tool")
    expect(other.row("Executing search_docs")).to_be_visible()
    address = other.page.evaluate("location.href")
    other.page.close()
    environment.open_gate("search")
    environment.open_gate("answer")
    tab.page.goto(address)
    tab.expect_text("That is all.")


@pytest.mark.requirement("pipe-restart")
def test_message_is_kept_after_a_restart_of_the_server_and_the_next_turn_works(
    environment: Environment, tab: Chat
) -> None:
    tab.open().send("script one tool")
    expect(tab.row("Executing search_docs")).to_be_visible()
    environment.limelight.kill()
    expect(tab.status).to_contain_text("reconnecting")
    environment.limelight.start()
    tab.expect_idle()
    expect(tab.status).to_contain_text("Failed")
    for _ in range(2):
        tab.expect_text("Let me look.")
        tab.row("search_docs").click()
        tab.expect_text("Error: the server stopped")
        tab.expect_text("Interrupted: the server stopped")
        tab.reload()
    expect_next_turn(tab)


@pytest.mark.requirement("pipe-error-remedy")
def test_unreachable_server_is_an_error_in_the_chat(environment: Environment, tab: Chat) -> None:
    environment.set_valves(RECONNECT_SECONDS=0)
    environment.limelight.kill()
    try:
        tab.open().send("hello")
        expect(tab.page.locator("body")).to_contain_text("cannot be reached")
        tab.expect_idle()
        expect(tab.status).to_contain_text("Failed")
    finally:
        environment.limelight.start()
        environment.set_valves(RECONNECT_SECONDS=120)
    expect_next_turn(tab)


@pytest.mark.requirement("pipe-error-remedy")
def test_wrong_key_is_an_error_that_names_the_valve(environment: Environment, tab: Chat) -> None:
    key = environment.api("GET", "/api/v1/functions/id/deep_agent_pipe/valves")["API_KEY"]
    environment.set_valves(API_KEY="wrong")
    try:
        tab.open().send("hello")
        expect(tab.page.locator("body")).to_contain_text("set the valve API_KEY")
    finally:
        environment.set_valves(API_KEY=key)
