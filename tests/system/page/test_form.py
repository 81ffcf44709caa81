"""The form of an agent that takes more than a question."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import expect

from tests.system.page.server import Stage, staged
from tests.system.page.tab import NewTab, Tab

AGENTS = "tests/system/page/form_agents.py"
CONFIG = f"""
[agents.trip]
target = "{AGENTS}:trip"
[agents.writer]
target = "{AGENTS}:writer"
context_from_request = true
"""
PHONE = {"width": 390, "height": 844}


@pytest.fixture(scope="module")
def forms(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    folder = tmp_path_factory.mktemp("forms")
    (folder / "config.toml").write_text(CONFIG)
    with staged(folder, "--config", str(folder / "config.toml")) as stage:
        yield stage


def choose(tab: Tab, agent: str) -> None:
    tab.page.get_by_role("button", name="Agent: ").click()
    tab.page.get_by_role("menuitem", name=agent).click()


@pytest.mark.requirement("graph-input")
def test_form_of_an_agent_that_takes_no_question(new_tab: NewTab, forms: Stage) -> None:
    tab = new_tab(address=forms.url).open()
    page = tab.page
    expect(page.get_by_role("group", name="Input of the agent")).to_be_visible()
    expect(page.get_by_label("Message")).to_have_count(0)
    tab.button("Send").click()
    expect(page.get_by_role("alert")).to_have_count(2)
    expect(page.get_by_label("Destinations")).to_be_focused()
    assert tab.axe() == []
    page.get_by_label("Destinations").fill("Rome\nPisa")
    page.get_by_label("Days").fill("3")
    page.get_by_text("More input").click()
    page.get_by_label("Pace").select_option("fast")
    page.get_by_label("By train").select_option("Yes")
    tab.button("Send").click()
    tab.expect_end()
    expect(page.get_by_text("3 days in Rome and Pisa, fast, by train")).to_be_visible()
    expect(page.get_by_role("article", name="You asked")).to_contain_text('destinations: ["Rome","Pisa"]')


def test_form_beside_the_message_on_a_phone(new_tab: NewTab, forms: Stage) -> None:
    tab = new_tab(address=forms.url, viewport=PHONE, fresh=True).open()
    page = tab.page
    choose(tab, "writer")
    page.get_by_label("Audience").fill("children")
    page.get_by_text("Settings of the agent").click()
    page.get_by_label("Tone").select_option("lively")
    tab.field.fill("bees")
    assert tab.axe() == []
    tab.field.press("Enter")
    tab.expect_end()
    expect(page.get_by_text("A lively text about bees, for children.")).to_be_visible()
    asked = page.get_by_role("article", name="You asked")
    expect(asked).to_contain_text("bees")
    expect(asked.get_by_label("Input values")).to_contain_text("children")
    tab.ask("ants")
    expect(page.get_by_text("A calm text about ants, for children.")).to_be_visible()
