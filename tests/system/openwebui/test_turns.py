"""Several turns: history, regenerated answers, edited questions, several chats, several models."""

import pytest
from playwright.sync_api import expect

from tests.support.wait import wait_for
from tests.system.openwebui.chat import Chat
from tests.system.openwebui.conftest import Environment


def complete_turn(tab: Chat, text: str, answer: str) -> None:
    tab.send(text)
    tab.expect_text(answer)
    tab.expect_idle()


def test_second_turn_has_the_first_with_its_calls(environment: Environment, tab: Chat) -> None:
    tab.open()
    complete_turn(tab, "script broken", "There is no such file.")
    complete_turn(tab, "and now?", "Received: ")
    expect(tab.answer).to_contain_text("user: script broken")
    expect(tab.answer).to_contain_text("There is no such file. | user: and now? (1 calls)")
    run = environment.latest_run(tab.chat_id)
    session = environment.request_limelight("GET", f"/sessions/{run['session_id']}")
    assert (session["turns"], session["title"]) == (2, "script broken")


def test_blocks_of_a_display_are_not_sent_to_the_agent(environment: Environment, tab: Chat) -> None:
    for display in ("collapse", "details"):
        environment.set_valves(DISPLAY=display)
        tab.open()
        complete_turn(tab, "script broken", "There is no such file.")
        complete_turn(tab, "and now?", "Received: ")
        expect(tab.answer).to_contain_text("assistant: There is no such file. | user: and now?")
        tab.expect_no_text("Execution Steps")


@pytest.mark.requirement("pipe-sessions")
def test_regenerate_starts_another_run_with_the_same_question(environment: Environment, tab: Chat) -> None:
    tab.open()
    complete_turn(tab, "first question", "Received: user: first question (0 calls)")
    first = environment.latest_run(tab.chat_id)["run_id"]
    tab.regenerate()
    tab.expect_idle()
    wait_for("another run", lambda: environment.latest_run(tab.chat_id)["run_id"] != first)
    tab.expect_text("Received: user: first question (0 calls)")


@pytest.mark.requirement("pipe-sessions")
def test_edited_question_replaces_the_later_turns(environment: Environment, tab: Chat) -> None:
    tab.open()
    complete_turn(tab, "one", "Received: user: one (0 calls)")
    complete_turn(tab, "two", "user: two (0 calls)")
    tab.edit_question("two", "three")
    tab.expect_text("user: three (0 calls)")
    tab.expect_no_text("user: two")


def test_two_chats_run_independently(environment: Environment, tab: Chat) -> None:
    tab.open().send("script one tool")
    expect(tab.row("Executing search_docs")).to_be_visible()
    other = tab.open_tab()
    other.open().send("script helpers")
    other.expect_text("Exploring")
    environment.open_gate("helpers")
    other.expect_text("Both have reported.")
    expect(tab.row("Executing search_docs")).to_be_visible()
    environment.open_gate("search")
    environment.open_gate("answer")
    tab.expect_text("That is all.")
    assert environment.latest_run(tab.chat_id)["session_id"] != environment.latest_run(other.chat_id)["session_id"]


@pytest.mark.requirement("pipe-models")
def test_each_agent_is_a_model(environment: Environment, tab: Chat) -> None:
    names = {model["id"]: model["name"] for model in environment.api("GET", "/api/models")["data"]}
    assert names["deep_agent_pipe.default"] == "Deep Agent Pipe"
    assert names["deep_agent_pipe.second"] == "Deep Agent Pipe · second"
    environment.open_gate("second")
    tab.open("deep_agent_pipe.second")
    complete_turn(tab, "hello", "The second agent received: hello")


def test_two_models_answer_one_question(environment: Environment, tab: Chat) -> None:
    environment.open_gate("second")
    tab.open("deep_agent_pipe.default,deep_agent_pipe.second").send("hello both")
    answers = tab.page.locator(".chat-assistant")
    expect(answers).to_have_count(2)
    expect(tab.page.locator("body")).to_contain_text("Received: user: hello both")
    expect(tab.page.locator("body")).to_contain_text("The second agent received: hello both")


@pytest.mark.requirement("pipe-tasks")
def test_titles_tags_and_suggestions_start_no_run(environment: Environment, tab: Chat) -> None:
    tab.open()
    complete_turn(tab, "a question that makes a title", "Received")
    wait_for("the title", lambda: environment.api("GET", f"/api/v1/chats/{tab.chat_id}")["title"] != "New Chat")
    assert environment.api("GET", f"/api/v1/chats/{tab.chat_id}")["title"] == "a question that makes a title"
    session = environment.request_limelight("GET", f"/sessions/{environment.user_id()}.{tab.chat_id}")
    assert session["turns"] == 1


@pytest.mark.requirement("pipe-api")
def test_client_of_the_api_gets_text(environment: Environment, tab: Chat) -> None:
    body = {"model": "deep_agent_pipe.default", "messages": [{"role": "user", "content": "hello"}], "stream": False}
    reply = environment.api("POST", "/api/chat/completions", body)
    assert reply["choices"][0]["message"]["content"] == "Received: user: hello (0 calls)"
