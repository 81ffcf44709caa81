"""A server with keys: the page asks for one, keeps it where no script can read it, and forgets it again."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import expect

from limelight.auth.key_file import Keyring
from tests.system.page.server import AGENTS_FILE, Stage, staged
from tests.system.page.tab import BROKEN_LINK, NewTab, Tab

REFUSED = r"status of 401|status of 403"


@pytest.fixture(scope="module")
def locked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Stage, Keyring]]:
    folder = tmp_path_factory.mktemp("locked")
    keyring = Keyring(folder / "house" / "data")
    keyring.create("nobody", ("use",), 1)
    with staged(folder / "house", f"{AGENTS_FILE}:second") as stage:
        yield stage, keyring


def enter(tab: Tab, key: str) -> Tab:
    tab.page.get_by_label("Key", exact=True).fill(key)
    tab.button("Continue").click()
    return tab


@pytest.mark.requirement("cookie", "page-key")
def test_page_asks_for_a_key_and_forgets_it_at_sign_out(locked: tuple[Stage, Keyring], new_tab: NewTab) -> None:
    stage, keyring = locked
    _, key = keyring.create("ann", ("use",), 1)
    tab = new_tab(fresh=True, address=stage.url)
    tab.forgive(REFUSED)
    tab.open()
    enter(tab, "lml_wrong")
    expect(tab.page.get_by_role("alert")).to_contain_text("not a key of this server")
    assert tab.axe() == []
    tab.shot("keys/refused")
    enter(tab, key)
    tab.ask("hello")
    expect(tab.answer).to_be_visible()
    assert tab.page.evaluate("document.cookie") == ""
    tab.page.reload()
    expect(tab.answer).to_be_visible()
    tab.button("Sign out ann").click()
    expect(tab.page.get_by_label("Key", exact=True)).to_be_visible()
    tab.page.reload()
    expect(tab.page.get_by_label("Key", exact=True)).to_be_visible()


def test_other_users_see_none_of_the_conversation(locked: tuple[Stage, Keyring], new_tab: NewTab) -> None:
    stage, keyring = locked
    ann, ben = (new_tab(fresh=True, address=stage.url) for _ in range(2))
    ann.forgive(REFUSED)
    ann.forgive("status of 404")
    enter(ann.open(), keyring.create("ann", ("use",), 1)[1]).ask("a secret of mine")
    expect(ann.answer).to_be_visible()
    enter(ben.open(), keyring.create("ben", ("use",), 1)[1])
    expect(ben.page.get_by_text("No conversations yet.")).to_be_visible()
    ben.open(f"#/s/{ann.session_id}")
    expect(ben.page.get_by_text("Conversation not found")).to_be_visible()


def test_revoked_key_is_asked_for_again(locked: tuple[Stage, Keyring], new_tab: NewTab) -> None:
    stage, keyring = locked
    key, text = keyring.create("cleo", ("use",), 1)
    tab = new_tab(fresh=True, address=stage.url)
    tab.forgive(REFUSED)
    tab.forgive(BROKEN_LINK)
    enter(tab.open(), text).ask("hello")
    expect(tab.answer).to_be_visible()
    keyring.revoke(key.key_id, 2)
    expect(tab.page.get_by_label("Key", exact=True)).to_be_visible()
