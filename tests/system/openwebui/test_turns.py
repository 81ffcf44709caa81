"""Several turns: history, another try, another question, several chats, several models."""

from playwright.sync_api import expect

from tests.system.openwebui.chat import Chat
from tests.system.openwebui.conftest import Stage
from tests.system.openwebui.processes import wait_for


def ended_turn(tab: Chat, text: str, answer: str) -> None:
    tab.say(text)
    tab.expect_text(answer)
    tab.expect_end()


def test_a_second_turn_knows_the_first_with_its_calls(stage: Stage, tab: Chat) -> None:
    tab.open()
    ended_turn(tab, "scene broken", "There is no such file.")
    ended_turn(tab, "and now?", "I was told: ")
    expect(tab.answer).to_contain_text("user: scene broken")
    expect(tab.answer).to_contain_text("There is no such file. | user: and now? (1 calls)")
    run = stage.run_of(tab.chat_id)
    session = stage.ask_limelight("GET", f"/sessions/{run['session_id']}")
    assert (session["turns"], session["title"]) == (2, "scene broken")


def test_what_a_display_adds_to_a_text_is_not_told_to_the_agent(stage: Stage, tab: Chat) -> None:
    for display in ("collapse", "details"):
        stage.valves(DISPLAY=display)
        tab.open()
        ended_turn(tab, "scene broken", "There is no such file.")
        ended_turn(tab, "and now?", "I was told: ")
        expect(tab.answer).to_contain_text("assistant: There is no such file. | user: and now?")
        tab.expect_no_text("Execution Steps")


def test_regenerating_asks_the_same_question_again(stage: Stage, tab: Chat) -> None:
    tab.open()
    ended_turn(tab, "first question", "I was told: user: first question (0 calls)")
    first = stage.run_of(tab.chat_id)["run_id"]
    tab.regenerate()
    tab.expect_end()
    wait_for("another run", lambda: stage.run_of(tab.chat_id)["run_id"] != first)
    tab.expect_text("I was told: user: first question (0 calls)")


def test_an_edited_question_starts_from_there(stage: Stage, tab: Chat) -> None:
    tab.open()
    ended_turn(tab, "one", "I was told: user: one (0 calls)")
    ended_turn(tab, "two", "user: two (0 calls)")
    tab.edit_question("two", "three")
    tab.expect_text("user: three (0 calls)")
    tab.expect_no_text("user: two")


def test_two_chats_at_once_do_not_disturb_each_other(stage: Stage, tab: Chat) -> None:
    tab.open().say("scene one tool")
    expect(tab.row("Executing search_docs")).to_be_visible()
    other = tab.another()
    other.open().say("scene helpers")
    other.expect_text("Exploring")
    stage.open_gate("helpers")
    other.expect_text("Both have reported.")
    expect(tab.row("Executing search_docs")).to_be_visible()
    stage.open_gate("search")
    stage.open_gate("answer")
    tab.expect_text("That is all.")
    assert stage.run_of(tab.chat_id)["session_id"] != stage.run_of(other.chat_id)["session_id"]


def test_every_agent_is_a_model(stage: Stage, tab: Chat) -> None:
    names = {model["id"]: model["name"] for model in stage.api("GET", "/api/models")["data"]}
    assert names["deep_agent_pipe.default"] == "Deep Agent Pipe"
    assert names["deep_agent_pipe.second"] == "Deep Agent Pipe · second"
    stage.open_gate("second")
    tab.open("deep_agent_pipe.second")
    ended_turn(tab, "hello", "The second one heard: hello")


def test_two_models_answer_one_question_one_after_the_other(stage: Stage, tab: Chat) -> None:
    stage.open_gate("second")
    tab.open("deep_agent_pipe.default,deep_agent_pipe.second").say("hello both")
    answers = tab.page.locator(".chat-assistant")
    expect(answers).to_have_count(2)
    expect(tab.page.locator("body")).to_contain_text("I was told: user: hello both")
    expect(tab.page.locator("body")).to_contain_text("The second one heard: hello both")


def test_titles_tags_and_suggestions_start_no_run(stage: Stage, tab: Chat) -> None:
    tab.open()
    ended_turn(tab, "a question that makes a title", "I was told")
    wait_for("the title", lambda: stage.api("GET", f"/api/v1/chats/{tab.chat_id}")["title"] != "New Chat")
    assert stage.api("GET", f"/api/v1/chats/{tab.chat_id}")["title"] == "a question that makes a title"
    session = stage.ask_limelight("GET", f"/sessions/{stage.user_id()}.{tab.chat_id}")
    assert session["turns"] == 1


def test_a_caller_of_the_api_gets_text(stage: Stage, tab: Chat) -> None:
    body = {"model": "deep_agent_pipe.default", "messages": [{"role": "user", "content": "hello"}], "stream": False}
    reply = stage.api("POST", "/api/chat/completions", body)
    assert reply["choices"][0]["message"]["content"] == "I was told: user: hello (0 calls)"
