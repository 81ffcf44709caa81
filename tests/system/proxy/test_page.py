"""The page through the proxies, in a real browser: it finds its files, its server and its socket, and keeps its key."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, BrowserContext, expect

from tests.system.openwebui.processes import KEY
from tests.system.page.tab import Tab
from tests.system.proxy.proxies import Site


@pytest.fixture
def context(browser: Browser) -> Iterator[BrowserContext]:
    context = browser.new_context(ignore_https_errors=True, reduced_motion="reduce")
    yield context
    context.close()


def test_page_works_behind_a_proxy(site: Site, context: BrowserContext) -> None:
    tab = Tab(context, site.url, {"status of 401"})
    tab.open()
    tab.page.get_by_label("Key", exact=True).fill(KEY)
    tab.button("Continue").click()
    tab.ask("hello")
    expect(tab.answer).to_contain_text("You said hello.")
    (cookie,) = context.cookies()
    assert (cookie.get("path"), cookie.get("secure"), cookie.get("httpOnly")) == (f"{site.root}/", True, True)
    tab.page.reload()
    expect(tab.answer).to_contain_text("You said hello.")
    deep = tab.page.url
    assert deep.startswith(f"{site.url}/#/s/")
    other = Tab(context, site.url, set())
    other.page.goto(deep)
    expect(other.answer).to_contain_text("You said hello.")
    other.ask("make")
    expect(other.answer).to_contain_text("made")
    for one in (tab, other):
        assert one.unforgiven() == []
        assert one.strangers() == []


def test_two_servers_of_one_host_name_share_no_cookie(sites: dict[str, Site], context: BrowserContext) -> None:
    """Cookies know no ports: only the names and paths keep these apart."""
    for name in ("nginx, alone", "nginx, below"):
        tab = Tab(context, sites[name].url, {"status of 401"})
        tab.open()
        tab.page.get_by_label("Key", exact=True).fill(KEY)
        tab.button("Continue").click()
        expect(tab.field).to_be_visible()
    assert len({cookie.get("name") for cookie in context.cookies()}) == 2
