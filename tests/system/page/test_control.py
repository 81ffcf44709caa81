"""Actions of the user during a run: stop, decide, send another message."""

import pytest
from playwright.sync_api import Locator, expect

from tests.support.wait import wait_for
from tests.system.page.server import Stage
from tests.system.page.tab import NewTab, Tab


@pytest.mark.requirement("page-control")
def test_stop_ends_the_run_on_the_server(tab: Tab, stage: Stage) -> None:
    tab.begin("scene patient")
    expect(tab.line("wait_long").get_by_role("img", name="running")).to_be_visible()
    tab.button("Stop").click()
    stage.wait_for_run(tab.session_id, "cancelled")
    tab.expect_end()
    expect(tab.page.locator(".run-stopped")).to_contain_text("Stopped")
    tab.show_steps()
    expect(tab.line("wait_long").get_by_role("img", name="stopped")).to_be_visible()
    expect(tab.line("wait_long")).to_contain_text("stopped")
    tab.ask("and now?")
    expect(tab.chat).to_contain_text("You said: and now?")


def test_second_esc_stops_the_run(tab: Tab, stage: Stage) -> None:
    tab.begin("scene patient")
    expect(tab.tool("wait_long")).to_be_visible()
    tab.page.keyboard.press("Escape")
    expect(tab.page.get_by_text("Press Esc again to stop the agent")).to_be_visible()
    assert stage.run_of(tab.session_id)["state"] == "running"

    def is_stopped() -> bool:
        """Press Esc again. On a busy machine the first press may be forgotten, which takes three seconds."""
        tab.page.keyboard.press("Escape")
        return stage.run_of(tab.session_id)["state"] == "cancelled"

    wait_for("the end of the run", is_stopped)
    tab.expect_end()


def question(tab: Tab) -> Locator:
    return tab.page.get_by_role("region", name="Approve send_mail?")


def test_approve_runs_the_tool(tab: Tab, stage: Stage) -> None:
    tab.begin("scene question")
    expect(question(tab)).to_contain_text('"to": "ann"')
    expect(tab.line("send_mail")).to_contain_text("waits for you")
    tab.shot("control/asks")
    question(tab).get_by_role("button", name="Approve").click()
    expect(tab.chat).to_contain_text("It was sent to ann.")
    expect(question(tab)).to_have_count(0)
    tab.show_steps()
    tab.line("send_mail").click()
    expect(tab.tool("send_mail")).to_contain_text("Approved")


@pytest.mark.requirement("page-control")
def test_edit_runs_the_tool_with_the_new_arguments(tab: Tab, stage: Stage) -> None:
    tab.begin("scene question")
    question(tab).get_by_role("button", name="Edit").click()
    field = tab.page.get_by_label("New arguments as JSON")
    field.fill('{"to": ')
    tab.button("Approve with changes").click()
    expect(question(tab).get_by_role("alert")).to_contain_text("not valid JSON")
    field.fill('{"to": "bob", "text": "hello"}')
    tab.button("Approve with changes").click()
    expect(tab.chat).to_contain_text("It was sent to bob.")
    run = stage.wait_for_run(tab.session_id, "finished")
    assert stage.get(f"/runs/{run['run_id']}/tools/mail")["result"] == "sent to bob"


def test_arguments_with_a_schema_are_edited_in_a_form(tab: Tab) -> None:
    tab.begin("scene booking")
    card = tab.page.get_by_role("region", name="Approve book?")
    card.get_by_role("button", name="Edit").click()
    expect(card.get_by_label("Days")).to_have_value("2")
    card.get_by_label("Lyon").check()
    card.get_by_label("Days").fill("4")
    assert tab.axe() == []
    tab.shot("control/edit_form")
    card.get_by_role("button", name="Approve with changes").click()
    expect(tab.chat).to_contain_text("Booked: lyo, 4 days.")


def test_reject_passes_the_reason_to_the_agent(tab: Tab, stage: Stage) -> None:
    tab.begin("scene question")
    question(tab).get_by_role("button", name="Reject").click()
    tab.page.get_by_label("Why not (the agent reads it)").fill("She is away")
    question(tab).get_by_role("button", name="Reject").click()
    expect(tab.chat).to_contain_text("It was not sent: She is away")
    tab.show_steps()
    expect(tab.line("send_mail").get_by_role("img", name="rejected")).to_be_visible()


@pytest.mark.requirement("page-control")
def test_message_during_a_run_is_queued(tab: Tab, stage: Stage) -> None:
    tab.begin("scene patient")
    expect(tab.tool("wait_long")).to_be_visible()
    tab.ask("the second message")
    waiting = tab.page.get_by_role("article", name="Message that waits")
    expect(waiting).to_contain_text("the second message")
    expect(waiting).to_contain_text("Waits for its turn")
    stage.open_gate("patience")
    expect(tab.chat).to_contain_text("You said: the second message")
    expect(waiting).to_have_count(0)
    expect(tab.chat).to_contain_text("It is over.")
    expect(tab.page.get_by_role("article", name="You asked")).to_have_count(2)
    assert stage.get(f"/sessions/{tab.session_id}")["turns"] == 2


@pytest.mark.requirement("page-control")
def test_queued_message_can_be_withdrawn(tab: Tab, stage: Stage) -> None:
    tab.begin("scene patient")
    expect(tab.tool("wait_long")).to_be_visible()
    tab.ask("never mind")
    expect(tab.page.get_by_text("Waits for its turn")).to_be_visible()
    tab.button("Withdraw").click()
    expect(tab.page.get_by_text("never mind")).to_have_count(0)
    tab.ask("this instead")
    stage.open_gate("patience")
    expect(tab.chat).to_contain_text("You said: this instead")
    assert stage.get(f"/sessions/{tab.session_id}")["turns"] == 2


@pytest.mark.requirement("page-control")
@pytest.mark.parametrize("way", ["keys", "menu"])
def test_message_can_interrupt_the_run(tab: Tab, stage: Stage, way: str) -> None:
    tab.begin("scene patient")
    expect(tab.tool("wait_long")).to_be_visible()
    run_id = stage.run_of(tab.session_id)["run_id"]
    tab.field.fill("leave that")
    if way == "keys":
        tab.field.press("Control+Enter")
    else:
        tab.button("How to send").click()
        tab.page.get_by_role("menuitem", name="Interrupt").click()
    expect(tab.chat).to_contain_text("You said: leave that")
    assert stage.get(f"/runs/{run_id}")["state"] == "cancelled"


def test_agent_can_be_chosen(new_tab: NewTab) -> None:
    tab = new_tab().open()
    tab.button("Agent: stage").click()
    tab.page.get_by_role("menuitem", name="second").click()
    tab.ask("who are you?")
    expect(tab.chat).to_contain_text("The second one heard: who are you?")
    tab.button("New").click()
    expect(tab.button("Agent: second")).to_be_visible()
    tab.page.reload()
    expect(tab.button("Agent: second")).to_be_visible()


def test_last_message_can_be_recalled(tab: Tab) -> None:
    tab.begin("say this again")
    tab.expect_end()
    tab.field.press("ArrowUp")
    expect(tab.field).to_have_value("say this again")


def test_draft_survives_a_reload(tab: Tab) -> None:
    tab.begin("hello")
    tab.expect_end()
    tab.field.fill("half a thought")
    tab.wait("() => Object.values(localStorage).some(one => one.includes('half a thought'))")
    tab.page.reload()
    expect(tab.field).to_have_value("half a thought")


@pytest.mark.requirement("questions-in-their-form")
def test_question_is_answered_in_its_form(tab: Tab) -> None:
    tab.begin("scene form")
    card = tab.page.get_by_role("region", name="The agent asks a question")
    expect(card).to_contain_text("Where shall I book,")
    card.get_by_role("button", name="Send answer").click()
    expect(card.get_by_role("alert")).to_have_text(["Choose one.", "Fill in a value."])
    card.get_by_label("Lyon").check()
    card.get_by_label("Days").fill("3")
    tab.shot("control/form")
    card.get_by_label("Days").press("Enter")
    expect(card).to_contain_text("What name?")
    card.get_by_label("Your answer").fill("Ada")
    tab.shot("control/text_question")
    card.get_by_role("button", name="Send answer").click()
    expect(tab.chat).to_contain_text("Booked: lyo, 3 days. For Ada.")
    tab.show_steps()
    expect(tab.chat.get_by_text("Answered by").first).to_be_visible()
