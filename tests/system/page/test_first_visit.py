"""The first page, with the built-in agents and the stand-in model: it explains, and each prompt works."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Locator, expect

from tests.system.page.server import Stage, staged
from tests.system.page.tab import NewTab, Tab


@pytest.fixture(scope="module")
def builtin(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    with staged(tmp_path_factory.mktemp("builtin"), "deep", "codact") as stage:
        yield stage


def prompts(tab: Tab, agent: str) -> Locator:
    return tab.page.get_by_role("list", name=f"Try {agent}").get_by_role("button")


def ask_all(new_tab: NewTab, server: Stage, agent: str) -> list[Tab]:
    """Send each prompt in a separate tab, all at the same time, and approve every request."""
    tabs: list[Tab] = []
    for number in range(3):
        tab = new_tab(address=server.url, viewport={"width": 1440, "height": 3000}).open()
        expect(tab.page.get_by_role("heading", name="Watch an agent work")).to_be_visible()
        if agent != "Deep agent":
            tab.page.get_by_role("button", name="Agent: ").click()
            tab.page.get_by_role("menuitem", name=agent).click()
        expect(prompts(tab, agent)).to_have_count(3)
        prompts(tab, agent).nth(number).click()
        tab.page.wait_for_url("**/#/s/*")
        tabs.append(tab)
    for tab in tabs:
        end = tab.page.locator(".run-end").last
        expect(end.or_(tab.button("Approve")).first).to_be_visible()
        if tab.button("Approve").count():
            tab.button("Approve").click()
        tab.expect_end()
        expect(tab.page.locator(".run-failure")).to_have_count(0)
        assert len(tab.answer.inner_text()) > 40
        tab.show_steps()
    return tabs


def test_empty_page_has_an_introduction_and_prompts(new_tab: NewTab, builtin: Stage) -> None:
    tab = new_tab(address=builtin.url).open()
    expect(tab.page.get_by_role("heading", name="Watch an agent work")).to_be_visible()
    expect(tab.page.get_by_text("see every step as it happens")).to_be_visible()
    expect(prompts(tab, "Deep agent")).to_have_count(3)
    expect(tab.page.get_by_text("A stand-in model plays here")).to_be_visible()
    expect(tab.page.get_by_text("LIMELIGHT_MODEL=")).to_be_visible()
    own = tab.page.get_by_text("Plug in your own agent")
    own.click()
    expect(tab.page.get_by_text("limelight serve my_agent.py:agent")).to_be_visible()
    tab.shot("start/empty")
    with tab.context.expect_page() as opened:
        tab.page.locator(".welcome-own").get_by_role("link", name="HTTP routes of this server").click()
    expect(opened.value.get_by_role("heading", level=1)).to_be_visible()


def test_page_without_the_offline_model_does_not_mention_it(tab: Tab) -> None:
    tab.open()
    expect(prompts(tab, "stage")).to_have_count(3)
    expect(tab.page.get_by_text("A stand-in model plays")).to_have_count(0)
    prompts(tab, "stage").first.click()
    expect(tab.chat).to_contain_text("You said: What can you do?")
    expect(tab.page.get_by_text("A stand-in model plays")).to_have_count(0)


def test_conversation_with_the_offline_model_shows_a_notice(new_tab: NewTab, builtin: Stage) -> None:
    tab = new_tab(address=builtin.url).begin("What is 2 + 3?")
    expect(tab.page.get_by_text("A stand-in model plays.")).to_be_visible()
    tab.expect_end()
    tab.shot("start/stand-in")
    tab.button("Use a real one").click()
    expect(tab.page.get_by_role("dialog")).to_contain_text("limelight serve")
    assert tab.axe() == []


def test_each_prompt_of_the_default_agent_works(new_tab: NewTab, builtin: Stage) -> None:
    bees, helpers, note = ask_all(new_tab, builtin, "Deep agent")
    expect(bees.page.get_by_role("region", name="To do").first).to_be_visible()
    expect(bees.lane("researcher").first).to_be_visible()
    expect(helpers.page.locator(".lanes-many .lane").nth(1)).to_be_visible()
    expect(note.page.locator(".tool").filter(has_text="delete").first).to_be_visible()


def test_each_prompt_of_the_coder_works(new_tab: NewTab, builtin: Stage) -> None:
    sum_, slow, error = ask_all(new_tab, builtin, "CodeAct agent")
    expect(sum_.chat).to_contain_text("95")
    sum_.pick_pane("Code")
    expect(sum_.page.locator(".cm-content")).to_be_visible()
    expect(slow.chat).to_contain_text("slept for 3 seconds")
    expect(error.page.locator(".state-failed").first).to_be_visible()
