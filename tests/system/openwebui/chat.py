"""A chat in a browser tab: the actions of a user, and what the page shows."""

import re
from pathlib import Path
from typing import Any

from playwright.sync_api import Locator, Page, expect

from tests.support.wait import DEADLINE

TIMEOUT_MS = 1000 * DEADLINE


class Chat:
    """A tab with Open WebUI."""

    def __init__(self, page: Page, url: str, screenshots: Path) -> None:
        self.page = page
        self._url = url
        self._screenshots = screenshots
        page.set_default_timeout(TIMEOUT_MS)
        expect.set_options(timeout=TIMEOUT_MS)

    def open(self, model: str = "deep_agent_pipe.default") -> "Chat":
        """Open a new chat with a model."""
        self.page.goto(f"{self._url}/?model={model}")
        self.page.wait_for_selector("#chat-input")
        return self

    def send(self, text: str) -> None:
        self.page.click("#chat-input")
        self.page.keyboard.insert_text(text)
        self.page.click("#send-message-button")

    def reload(self) -> None:
        """Load the page again."""
        self.page.evaluate("location.reload()")
        self.page.wait_for_selector(".chat-assistant")

    @property
    def chat_id(self) -> str:
        match = re.search(r"/c/([\w-]+)", self.page.evaluate("location.href"))
        assert match is not None
        return match[1]

    @property
    def answer(self) -> Locator:
        """The last answer, with all rows and texts."""
        return self.page.locator(".chat-assistant").last

    @property
    def status(self) -> Locator:
        return self.page.locator(".status-description").last

    @property
    def rows(self) -> Locator:
        """The rows of tools in any display."""
        return self.answer.locator("[id$='-tool-call'] > [role=button], [id$='-tc'] > [role=button]")

    def row(self, text: str) -> Locator:
        return self.rows.filter(has_text=text)

    def expect_text(self, text: str) -> None:
        expect(self.answer).to_contain_text(text)

    def expect_no_text(self, text: str) -> None:
        expect(self.answer).not_to_contain_text(text)

    def expect_idle(self) -> None:
        """Wait until no run is live: the Stop button is gone."""
        expect(self.page.locator("button[aria-label='Stop']")).to_have_count(0)

    def stop(self) -> None:
        self.page.click("button[aria-label='Stop']")

    def open_tab(self) -> "Chat":
        """A second tab of the same user."""
        return Chat(self.page.context.new_page(), self._url, self._screenshots)

    def regenerate(self) -> None:
        self.page.locator("button[aria-label='Regenerate']").last.click()
        again = self.page.get_by_text("Try Again")
        if again.count():
            again.first.click()

    def edit_question(self, before: str, after: str) -> None:
        """Change a question and send it."""
        question = self.page.locator(".user-message").filter(has_text=before).last
        question.hover()
        question.locator("button[aria-label='Edit']").click()
        box = self.page.locator("textarea[id^='message-edit-']").last
        box.fill(after)
        self.page.locator("#confirm-edit-message-button").last.click()

    @property
    def card(self) -> Locator:
        """The card of an approval above the input."""
        return self.page.locator("form, div").filter(has_text="Submit answers").last.locator("xpath=..")

    def choose(self, label: str) -> None:
        """Choose an option of the card, which is the answer."""
        self.page.get_by_text(label, exact=True).last.click()

    def answer_with_text(self, text: str) -> None:
        self.page.get_by_placeholder("Type your answer").last.fill(text)
        self.page.get_by_text("Submit answers").click()

    @property
    def dialog(self) -> Locator:
        return self.page.locator("[role=dialog][aria-modal=true]").last

    def type_into_dialog(self, text: str) -> None:
        self.dialog.locator("input, textarea").last.fill(text)
        self.dialog.get_by_text("Confirm", exact=True).click()

    def open_source(self, name: str) -> None:
        """Open a source of the list below the answer in a window."""
        listed = self.page.get_by_role("button").filter(has_text=name).last
        if not listed.count():
            self.page.locator("button[aria-label*='source' i]").last.click()
        listed.click()
        expect(self.modal).to_be_visible()

    @property
    def modal(self) -> Locator:
        return self.page.locator(".modal").last

    def close_modal(self) -> None:
        self.page.keyboard.press("Escape")
        expect(self.page.locator(".modal")).to_have_count(0)

    def open_group(self) -> None:
        """Expand the group of rows, if it is collapsed."""
        group = self.answer.locator("[aria-label='Toggle details']").first
        if group.count() and not self.rows.count():
            group.click()

    def screenshot(self, name: str) -> None:
        self._screenshots.mkdir(parents=True, exist_ok=True)
        self.page.screenshot(path=self._screenshots / f"{name}.png")

    def evaluate(self, code: str) -> Any:
        return self.page.evaluate(code)
