"""Takes the screenshots of the page for the documents: `make pictures`.

The server is real, and the understudy is the model. Each screenshot shows a state of the page after a prompt.
"""

import os
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path

import httpx
from playwright.sync_api import Browser, expect, sync_playwright

from tests.support.wait import DEADLINE
from tests.system.page.conftest import FLAGS
from tests.system.page.server import Stage, staged
from tests.system.page.tab import Tab

PICTURES = Path(__file__).parents[1] / "docs" / "pictures"
WIDE = {"width": 1440, "height": 900}
NARROW = {"width": 380, "height": 800}
AGENT = Path(__file__).parent / "page_pictures_agent.py"
PACE_MS = "60"
"""Pause of the understudy between two words, longer than the default, so that a run lasts until its screenshot."""


def ask(tab: Tab, text: str, agent: str = "Deep agent") -> None:
    """Send a message to this agent in a new session."""
    tab.open()
    expect(tab.page.get_by_role("list", name="Try ")).to_be_visible()
    if not tab.button(f"Agent: {agent}").count():
        tab.page.get_by_role("button", name="Agent: ").click()
        tab.page.get_by_role("menuitem", name=agent).click()
    tab.ask(text)


def scroll_to_top(tab: Tab) -> None:
    tab.chat.evaluate("box => { box.scrollTop = 0 }")
    expect(tab.page.get_by_role("article", name="You asked")).to_be_in_viewport()


def chat(tab: Tab) -> None:
    """Show two sub-agents that work in parallel, and the timeline."""
    ask(tab, "Ask two helpers at once about tides and lighthouses")
    tab.pick_pane("Timeline")
    lanes = tab.page.locator(".lanes-many > .lane-running")
    expect(lanes).to_have_count(2)
    # Both have finished a call and are still running.
    for number in (0, 1):
        expect(lanes.nth(number).locator(".tool-done").first).to_be_visible()
    scroll_to_top(tab)


def code(tab: Tab) -> None:
    ask(tab, "In which months is the harbour deeper than usual?", "analyst")
    tab.expect_end()
    tab.pick_pane("Code")
    expect(tab.page.locator(".cm-content")).to_contain_text("limit")
    tab.show_steps()
    scroll_to_top(tab)


def terminal(tab: Tab) -> None:
    ask(tab, "Compare the tides of the harbour by month", "analyst")
    tab.expect_end()
    tab.pick_pane("Terminal")
    expect(tab.page.locator(".xterm-rows")).to_contain_text("red: above")
    scroll_to_top(tab)


def timeline(tab: Tab) -> None:
    ask(tab, "How do bees find their way to food?")
    tab.expect_end()
    tab.pick_pane("Timeline")
    tab.page.locator(".timeline-scroll").evaluate("box => { box.scrollTop = 0 }")
    scroll_to_top(tab)


def approval(tab: Tab) -> None:
    ask(tab, "Write a note about kites and delete it again, with an approval")
    expect(tab.button("Approve")).to_be_visible()
    tab.pick_pane("Timeline")


def error(tab: Tab) -> None:
    ask(tab, "Look up rivers with a slow tool, and try an error", "Demo")
    tab.expect_end()
    tab.show_steps()
    scroll_to_top(tab)


def dark(tab: Tab) -> None:
    chat(tab)


def narrow(tab: Tab) -> None:
    ask(tab, "How do bees find their way to food?")
    tab.expect_end()
    tab.show_steps()
    scroll_to_top(tab)


SCENES: tuple[Callable[[Tab], None], ...] = (code, terminal, timeline, approval, error, narrow, chat, dark)
"""The functions that prepare the screenshots, in order: the last screenshots show the earlier sessions in the list."""
DELETED_SESSIONS = (narrow, chat)
"""Scenes whose session is deleted afterwards, because another scene has a session with the same title."""


def take(browser: Browser, stage: Stage, scene: Callable[[Tab], None]) -> None:
    name = scene.__name__
    context = browser.new_context(
        viewport=NARROW if scene is narrow else WIDE,  # pyright: ignore[reportArgumentType]
        color_scheme="dark" if scene is dark else "light",
        reduced_motion="reduce",
    )
    tab = Tab(context, stage.url, set())
    scene(tab)
    tab.page.wait_for_load_state("networkidle")
    tab.page.mouse.move(0, 0)
    tab.page.evaluate("document.activeElement.blur()")
    # The button that scrolls to the end would hide a line.
    tab.page.evaluate("document.querySelector('.to-now')?.style.setProperty('visibility', 'hidden')")
    tab.page.screenshot(path=PICTURES / f"page-{name}.png")
    if scene in DELETED_SESSIONS:
        httpx.delete(f"{stage.url}/sessions/{tab.session_id}").raise_for_status()
    context.close()
    if tab.complaints:
        raise SystemExit(f"{name}: {tab.complaints}")


def warm_up(browser: Browser, stage: Stage) -> None:
    """Run each agent once before the screenshots, so that none of them shows a run that waits for a framework."""
    for agent in ("Deep agent", "analyst"):
        tab = Tab(browser.new_context(), stage.url, set())
        ask(tab, "What is 2 + 3?", agent)
        tab.expect_end()
        httpx.delete(f"{stage.url}/sessions/{tab.session_id}").raise_for_status()
        tab.context.close()


def main() -> None:
    chromium = shutil.which("chromium")
    if chromium is None:
        raise SystemExit("chromium is not in the PATH: apt-get install chromium")
    expect.set_options(timeout=DEADLINE * 1000)
    os.environ["LIMELIGHT_UNDERSTUDY_PACE_MS"] = PACE_MS
    with (
        tempfile.TemporaryDirectory() as folder,
        staged(Path(folder) / "stage", "deep", "demo", f"{AGENT}:analyst") as stage,
        sync_playwright() as playwright,
    ):
        browser = playwright.chromium.launch(executable_path=chromium, args=list(FLAGS))
        warm_up(browser, stage)
        for scene in SCENES:
            take(browser, stage, scene)
        browser.close()


if __name__ == "__main__":
    main()
