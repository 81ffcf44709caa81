"""Both programs run once for all tests. Each test has a new tab, and fails if a script opens a dialog in it."""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import pytest
from playwright.sync_api import Browser, Dialog, sync_playwright

from tests.support.wait import DEADLINE
from tests.system.openwebui.chat import Chat
from tests.system.openwebui.processes import AGENTS_FILE, KEY, ROOT, Program, limelight, open_webui, sign_up

SCREENSHOTS = ROOT / "build" / "openwebui"
CHROMIUM_FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--no-first-run",
    "--disable-component-update",
    "--disable-sync",
)
FUNCTION_PATH = "/api/v1/functions/id/deep_agent_pipe"


class Environment(NamedTuple):
    """The running programs, and access to them outside of the browser."""

    webui: Program
    limelight: Program
    token: str
    folder: Path

    def open_gate(self, name: str) -> None:
        (self.folder / "gates" / name).touch()

    def close_gates(self) -> None:
        for gate in (self.folder / "gates").iterdir():
            gate.unlink()

    def api(self, method: str, path: str, body: Any = None) -> Any:
        """Open WebUI's API, as its administrator."""
        headers = {"Authorization": f"Bearer {self.token}"}
        reply = httpx.request(method, self.webui.url + path, json=body, headers=headers, timeout=DEADLINE)
        reply.raise_for_status()
        return reply.json()

    def set_valves(self, **valves: Any) -> None:
        self.api("POST", f"{FUNCTION_PATH}/valves/update", {**self.api("GET", f"{FUNCTION_PATH}/valves"), **valves})

    def user_id(self) -> str:
        return self.api("GET", "/api/v1/auths/")["id"]

    def request_limelight(self, method: str, path: str, body: Any = None) -> Any:
        """Limelight's API, for the administrator of Open WebUI."""
        headers = {"Authorization": f"Bearer {KEY}", "X-Limelight-User-Id": self.user_id()}
        reply = httpx.request(method, self.limelight.url + path, json=body, headers=headers, timeout=DEADLINE)
        reply.raise_for_status()
        return reply.json()

    def latest_run(self, chat_id: str) -> dict[str, Any]:
        """The latest run of a chat."""
        session = self.request_limelight("GET", f"/sessions/{self.user_id()}.{chat_id}")
        return self.request_limelight("GET", f"/runs/{session['run_id']}")

    def install(self, *options: str, **environment: str) -> "subprocess.CompletedProcess[str]":
        environment = {**os.environ, **environment}
        command = [sys.executable, "-m", "limelight", "openwebui", "install", "--url", self.webui.url, *options]
        return subprocess.run(command, capture_output=True, text=True, check=False, timeout=120, env=environment)


@pytest.fixture(scope="session")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Environment]:
    folder = tmp_path_factory.mktemp("openwebui")
    with limelight(folder, f"{AGENTS_FILE}:scripted", f"{AGENTS_FILE}:second") as server, open_webui(folder) as webui:
        environment = Environment(webui, server, sign_up(webui.url), folder)
        result = environment.install("--token", environment.token, "--server", server.url, "--api-key", KEY)
        assert result.returncode == 0, result.stderr
        yield environment


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=list(CHROMIUM_FLAGS))
        yield browser
        browser.close()


@pytest.fixture
def tab(environment: Environment, browser: Browser, request: pytest.FixtureRequest) -> Iterator[Chat]:
    """A tab without a chat. Requests to the internet are aborted; a screenshot shows the end of the test."""
    environment.close_gates()
    environment.set_valves(DISPLAY="native", SHOW_TOOL_CITATIONS=True, SHOW_SUBAGENT_STATUS=True)
    context = browser.new_context(viewport={"width": 1200, "height": 900})
    context.add_init_script(f"localStorage.token = {environment.token!r}")
    context.route(
        lambda url: not url.startswith((environment.webui.url, "data:", "blob:")), lambda route: route.abort()
    )
    chat = Chat(context.new_page(), environment.webui.url, SCREENSHOTS)
    dialogs: list[str] = []

    def dismiss(dialog: Dialog) -> None:
        dialogs.append(dialog.message)
        dialog.dismiss()

    chat.page.on("dialog", dismiss)
    yield chat
    chat.screenshot(f"{request.node.name}".replace("[", "-").replace("]", ""))
    context.close()
    assert not dialogs, "a script of a tool result was executed"
