"""An agent asks before it acts: the card in the chat, and decisions from elsewhere."""

from playwright.sync_api import expect

from tests.system.openwebui.chat import Chat
from tests.system.openwebui.conftest import Stage


def asked(tab: Chat) -> None:
    tab.open().say("scene question")
    expect(tab.row("send_mail · waiting for approval")).to_be_visible()
    expect(tab.card).to_contain_text("May send_mail run with")


def test_approve(stage: Stage, tab: Chat) -> None:
    asked(tab)
    tab.shot("approval")
    tab.choose("Approve")
    tab.expect_text("It was sent to ann.")
    tab.expect_end()
    expect(tab.row("View Result from send_mail")).to_be_visible()


def test_reject(stage: Stage, tab: Chat) -> None:
    asked(tab)
    tab.choose("Reject")
    tab.expect_text("It was not sent")
    tab.row("send_mail").click()
    tab.expect_text("Error: rejected")


def test_reject_with_a_reason(stage: Stage, tab: Chat) -> None:
    asked(tab)
    tab.answer_otherwise("ann is on holiday")
    tab.expect_text("It was not sent: ann is on holiday")


def test_edit(stage: Stage, tab: Chat) -> None:
    asked(tab)
    tab.choose("Edit")
    tab.type_into_dialog('{"to": "bob", ')
    expect(tab.dialog).to_contain_text("not valid JSON")
    tab.type_into_dialog('{"to": "bob", "text": "hi"}')
    tab.expect_text("It was sent to bob.")


def test_arguments_that_are_too_long_for_the_card_can_be_seen_and_changed(stage: Stage, tab: Chat) -> None:
    tab.open().say("scene long question")
    expect(tab.card).to_contain_text("more characters: choose Edit to see all")
    expect(tab.page.get_by_text("Reject", exact=True).last).to_be_in_viewport()
    tab.shot("approval-long")
    tab.choose("Edit")
    whole = tab.dialog.locator("input, textarea").last.input_value()
    tab.shot("approval-long-edit")
    assert "echo and drop everything" in whole
    tab.type_into_dialog(whole.replace("echo and drop everything", ""))
    tab.expect_text("It ran 60000 characters.")


def test_the_card_survives_a_reload(stage: Stage, tab: Chat) -> None:
    asked(tab)
    tab.reload()
    expect(tab.card).to_contain_text("May send_mail run with")
    tab.choose("Approve")
    tab.expect_text("It was sent to ann.")


def test_a_decision_from_elsewhere_takes_the_card_away(stage: Stage, tab: Chat) -> None:
    asked(tab)
    run = stage.run_of(tab.chat_id)
    approval = run["approvals"][0]["approval_id"]
    stage.ask_limelight("POST", f"/runs/{run['run_id']}/approvals/{approval}", {"decision": "approve"})
    tab.expect_text("It was sent to ann.")
    expect(tab.card).to_have_count(0)


def test_a_reload_before_the_question_does_not_lose_it(stage: Stage, tab: Chat) -> None:
    tab.open().say("scene late question")
    expect(tab.row("Executing prepare")).to_be_visible()
    tab.reload()
    stage.open_gate("late")
    expect(tab.card).to_contain_text("May send_mail run with")
    tab.choose("Approve")
    tab.expect_text("It was sent to ann.")


def test_stop_while_it_waits(stage: Stage, tab: Chat) -> None:
    asked(tab)
    stage.api("POST", f"/api/tasks/chat/{tab.chat_id}/stop")
    expect(tab.status).to_have_text("Stopped")
    expect(tab.card).to_have_count(0)
    assert stage.run_of(tab.chat_id)["state"] == "cancelled"
