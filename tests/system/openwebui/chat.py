"""One chat in a browser tab, with words for what a person does and sees there."""

import re
from pathlib import Path
from typing import Any

from playwright.sync_api import Locator, Page, expect

SECONDS = 30_000


class Chat:
    """A tab with Open WebUI in it."""

    def __init__(self, page: Page, url: str, shots: Path) -> None:
        self.page = page
        self._url = url
        self._shots = shots
        page.set_default_timeout(SECONDS)
        expect.set_options(timeout=SECONDS)

    def open(self, model: str = "deep_agent_pipe.default") -> "Chat":
        """A new chat with a model."""
        self.page.goto(f"{self._url}/?model={model}")
        self.page.wait_for_selector("#chat-input")
        return self

    def say(self, text: str) -> None:
        self.page.click("#chat-input")
        self.page.keyboard.insert_text(text)
        self.page.click("#send-message-button")

    def reload(self) -> None:
        """Load the page again, in the middle of things or after the end."""
        self.page.evaluate("location.reload()")
        self.page.wait_for_selector(".chat-assistant")

    @property
    def chat_id(self) -> str:
        found = re.search(r"/c/([\w-]+)", self.page.evaluate("location.href"))
        assert found is not None
        return found[1]

    @property
    def answer(self) -> Locator:
        """The last answer, with everything in it."""
        return self.page.locator(".chat-assistant").last

    @property
    def status(self) -> Locator:
        return self.page.locator(".status-description").last

    @property
    def rows(self) -> Locator:
        """The rows of tools, in whatever display."""
        return self.answer.locator("[id$='-tool-call'] > [role=button], [id$='-tc'] > [role=button]")

    def row(self, text: str) -> Locator:
        return self.rows.filter(has_text=text)

    def expect_text(self, text: str) -> None:
        expect(self.answer).to_contain_text(text)

    def expect_no_text(self, text: str) -> None:
        expect(self.answer).not_to_contain_text(text)

    def expect_end(self) -> None:
        """Nothing works any more."""
        expect(self.page.locator("button[aria-label='Stop']")).to_have_count(0)

    def stop(self) -> None:
        self.page.click("button[aria-label='Stop']")

    def another(self) -> "Chat":
        """A second tab of the same person."""
        return Chat(self.page.context.new_page(), self._url, self._shots)

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
        """The question above the input."""
        return self.page.locator("form, div").filter(has_text="Submit answers").last.locator("xpath=..")

    def choose(self, label: str) -> None:
        """With one question a choice is the answer."""
        self.page.get_by_text(label, exact=True).last.click()

    def answer_otherwise(self, text: str) -> None:
        self.page.get_by_placeholder("Type your answer").last.fill(text)
        self.page.get_by_text("Submit answers").click()

    @property
    def dialog(self) -> Locator:
        return self.page.locator("[role=dialog][aria-modal=true]").last

    def type_into_dialog(self, text: str) -> None:
        self.dialog.locator("input, textarea").last.fill(text)
        self.dialog.get_by_text("Confirm", exact=True).click()

    def open_source(self, name: str) -> None:
        """A source from the list below the answer, in a window of its own."""
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
        """Show the rows of a group, if they are in one that is closed."""
        group = self.answer.locator("[aria-label='Toggle details']").first
        if group.count() and not self.rows.count():
            group.click()

    def shot(self, name: str) -> None:
        self._shots.mkdir(parents=True, exist_ok=True)
        self.page.screenshot(path=self._shots / f"{name}.png")

    def evaluate(self, code: str) -> Any:
        return self.page.evaluate(code)
