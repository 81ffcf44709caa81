"""Approvals: the card in the chat, and decisions from elsewhere."""

import pytest
from playwright.sync_api import expect

from tests.system.openwebui.chat import Chat
from tests.system.openwebui.conftest import Environment


def open_approval(tab: Chat) -> None:
    tab.open().send("script question")
    expect(tab.row("send_mail · waiting for approval")).to_be_visible()
    expect(tab.card).to_contain_text("May send_mail run with")


@pytest.mark.requirement("pipe-approvals")
def test_approve_runs_the_tool(environment: Environment, tab: Chat) -> None:
    open_approval(tab)
    tab.screenshot("approval")
    tab.choose("Approve")
    tab.expect_text("It was sent to ann.")
    tab.expect_idle()
    expect(tab.row("View Result from send_mail")).to_be_visible()


def test_reject_fails_the_call(environment: Environment, tab: Chat) -> None:
    open_approval(tab)
    tab.choose("Reject")
    tab.expect_text("It was not sent")
    tab.row("send_mail").click()
    tab.expect_text("Error: rejected")


def test_text_under_other_rejects_with_a_reason(environment: Environment, tab: Chat) -> None:
    open_approval(tab)
    tab.answer_with_text("ann is on holiday")
    tab.expect_text("It was not sent: ann is on holiday")


@pytest.mark.requirement("pipe-approvals")
def test_edit_repeats_until_the_arguments_are_valid(environment: Environment, tab: Chat) -> None:
    open_approval(tab)
    tab.choose("Edit")
    tab.type_into_dialog('{"to": "bob", ')
    expect(tab.dialog).to_contain_text("not valid JSON")
    tab.type_into_dialog('{"to": "bob", "text": "hi"}')
    tab.expect_text("It was sent to bob.")


def test_long_arguments_are_complete_in_the_editor(environment: Environment, tab: Chat) -> None:
    tab.open().send("script long question")
    expect(tab.card).to_contain_text("more characters: choose Edit to see all")
    expect(tab.page.get_by_text("Reject", exact=True).last).to_be_in_viewport()
    tab.screenshot("approval-long")
    tab.choose("Edit")
    args = tab.dialog.locator("input, textarea").last.input_value()
    tab.screenshot("approval-long-edit")
    assert "echo and drop everything" in args
    tab.type_into_dialog(args.replace("echo and drop everything", ""))
    tab.expect_text("It ran 60000 characters.")


@pytest.mark.requirement("pipe-approvals")
def test_card_is_shown_again_after_a_reload(environment: Environment, tab: Chat) -> None:
    open_approval(tab)
    tab.reload()
    expect(tab.card).to_contain_text("May send_mail run with")
    tab.choose("Approve")
    tab.expect_text("It was sent to ann.")


@pytest.mark.requirement("pipe-approvals")
def test_decision_from_elsewhere_removes_the_card(environment: Environment, tab: Chat) -> None:
    open_approval(tab)
    run = environment.latest_run(tab.chat_id)
    approval = run["approvals"][0]["approval_id"]
    environment.request_limelight("POST", f"/runs/{run['run_id']}/approvals/{approval}", {"decision": "approve"})
    tab.expect_text("It was sent to ann.")
    expect(tab.card).to_have_count(0)


def test_card_is_shown_after_a_reload_before_the_request(environment: Environment, tab: Chat) -> None:
    tab.open().send("script late question")
    expect(tab.row("Executing prepare")).to_be_visible()
    tab.reload()
    environment.open_gate("late")
    expect(tab.card).to_contain_text("May send_mail run with")
    tab.choose("Approve")
    tab.expect_text("It was sent to ann.")


def test_stop_removes_the_card_and_cancels_the_run(environment: Environment, tab: Chat) -> None:
    open_approval(tab)
    environment.api("POST", f"/api/tasks/chat/{tab.chat_id}/stop")
    expect(tab.status).to_have_text("Stopped")
    expect(tab.card).to_have_count(0)
    assert environment.latest_run(tab.chat_id)["state"] == "cancelled"
