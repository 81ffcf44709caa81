"""A browser tab with the page: the actions of a user, and what the page shows."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
from playwright.sync_api import BrowserContext, ConsoleMessage, Dialog, Locator, Page, Request, expect

from tests.support.wait import DEADLINE, wait_for

AXE = Path(__file__).parents[3] / "web" / "node_modules" / "axe-core" / "axe.min.js"
SHOTS = Path(__file__).parents[3] / "build" / "page"
BROKEN_LINK = "|".join(
    (
        "WebSocket connection to",
        "ERR_CONNECTION_REFUSED",
        "ERR_INTERNET_DISCONNECTED",
        "ERR_EMPTY_RESPONSE",
        "ERR_CONNECTION_RESET",
        "ERR_CONNECTION_CLOSED",
        # A file that was being loaded when the connection was cut.
        "ERR_CONTENT_LENGTH_MISMATCH",
        "dynamically imported module",
    )
)
BAD = ("serious", "critical")


class Tab:
    """A tab that records errors in the console, dialogs, and requests to other servers."""

    def __init__(self, context: BrowserContext, address: str, forgiven: set[str]) -> None:
        self.context = context
        self.url = address
        self.page: Page = context.new_page()
        self.page.set_default_timeout(DEADLINE * 1000)
        self.complaints: list[str] = []
        self.requests: list[str] = []
        self._forgiven = forgiven
        self.page.on("console", self._note)
        self.page.on("pageerror", lambda error: self.complaints.append(f"uncaught: {error}"))
        self.page.on("dialog", self._dismiss)
        self.page.on("request", self._note_request)

    def _note(self, message: ConsoleMessage) -> None:
        if message.type in ("error", "warning"):
            self.complaints.append(f"{message.type}: {message.text} ({message.location.get('url', '')})")

    def _dismiss(self, dialog: Dialog) -> None:
        self.complaints.append(f"dialog: {dialog.message}")
        dialog.dismiss()

    def _note_request(self, request: Request) -> None:
        self.requests.append(request.url)

    def forgive(self, pattern: str) -> None:
        """Ignore console errors that this test causes on purpose."""
        self._forgiven.add(pattern)

    def unforgiven(self) -> list[str]:
        return [message for message in self.complaints if not any(re.search(one, message) for one in self._forgiven)]

    def strangers(self) -> list[str]:
        """Requests to other servers."""
        own = (self.url, self.url.replace("http", "ws", 1), "data:", "blob:")
        return [url for url in self.requests if not url.startswith(own)]

    def open(self, address: str = "#/") -> "Tab":
        self.page.goto(f"{self.url}/{address}")
        return self

    def ask(self, text: str) -> "Tab":
        """Send a message."""
        self.field.fill(text)
        expect(self.button("Send").or_(self.button("Queue"))).to_be_enabled()
        self.field.press("Enter")
        expect(self.field).to_have_value("")
        return self

    def begin(self, text: str) -> "Tab":
        """Start a session with a message, and wait until the server has the session."""
        self.open().ask(text)
        self.page.wait_for_url("**/#/s/*")
        wait_for("the session", lambda: httpx.get(f"{self.url}/sessions/{self.session_id}").status_code == 200)
        return self

    @property
    def session_id(self) -> str:
        found = re.search(r"#/s/([^/]+)", self.page.url)
        assert found is not None, self.page.url
        return found[1]

    @property
    def field(self) -> Locator:
        return self.page.get_by_label("Message", exact=True)

    @property
    def chat(self) -> Locator:
        return self.page.get_by_role("log", name="Conversation")

    def tool(self, name: str) -> Locator:
        return self.page.locator(".tool").filter(has=self.page.locator(".tool-name", has_text=exactly(name)))

    def line(self, name: str) -> Locator:
        return self.tool(name).locator("> .tool-line")

    def lane(self, name: str) -> Locator:
        return self.page.get_by_role("region", name=f"Sub-agent {name}")

    @property
    def steps(self) -> Locator:
        return self.page.locator(".steps-head").last

    @property
    def answer(self) -> Locator:
        return self.page.get_by_role("article", name="Answer").last

    def button(self, name: str) -> Locator:
        return self.page.get_by_role("button", name=name, exact=True)

    def pane(self, name: str) -> Locator:
        return self.page.get_by_role("tab", name=name)

    def pick_pane(self, name: str) -> None:
        self.pane(name).click()
        expect(self.pane(name)).to_have_attribute("aria-selected", "true")

    def expect_end(self) -> None:
        """Wait until the run has ended."""
        expect(self.page.locator(".run-end").last).to_be_visible()
        expect(self.button("Stop")).to_have_count(0)

    def show_steps(self) -> None:
        """Expand the steps of all runs by key: a header may be outside of the viewport."""
        self.chat.focus()
        self.page.keyboard.press("e")
        expect(self.page.locator(".steps-head[aria-expanded=false]")).to_have_count(0)

    def wait(self, condition: str, argument: Any = None) -> None:
        """Wait until a function in the page returns true. It must not be async: a promise would count as true."""
        assert not condition.startswith("async")
        self.page.wait_for_function(condition, arg=argument, polling=50)

    def expect_clipboard(self, text: str) -> None:
        """Wait for a text in the clipboard. The tab needs the permission to read it."""
        wait_for("the text in the clipboard", lambda: self.page.evaluate("navigator.clipboard.readText()") == text)

    def shot(self, name: str) -> None:
        """Save a screenshot below build/page."""
        path = SHOTS / f"{name}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        self.page.screenshot(path=path)

    def axe(self) -> list[str]:
        """The serious and critical violations that axe-core finds."""
        if not self.page.evaluate("'axe' in window"):
            self.page.evaluate(AXE.read_text())
        found = self.page.evaluate("axe.run(document, {resultTypes: ['violations']})")
        return [
            f"{one['id']}: {one['help']}: {json.dumps([node['html'][:200] for node in one['nodes'][:3]])}"
            for one in found["violations"]
            if one["impact"] in BAD
        ]


def exactly(text: str) -> re.Pattern[str]:
    return re.compile(f"^{re.escape(text)}$")


NewTab = Callable[..., Tab]
