"""Hostile output of an agent is shown as text: nothing of it runs, and nothing is loaded."""

import re

import httpx
import pytest
from playwright.sync_api import expect

from tests.system.page import hostile_agent
from tests.system.page.server import Stage
from tests.system.page.tab import NewTab, Tab

TURNED = """() => {
  const found = [];
  const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (texts.nextNode())
    if (/[\\u202a-\\u202e\\u2066-\\u2069]/.test(texts.currentNode.data))
      found.push(texts.currentNode.parentElement.closest("[class]").className);
  return found;
}"""
"""Returns the elements whose text has characters that change the text direction."""


@pytest.fixture
def attacked(new_tab: NewTab, stage: Stage) -> Tab:
    """A tab with a run of the hostile agent, which waits for an approval."""
    tab = new_tab(viewport={"width": 1440, "height": 3000}).open()
    tab.button("Agent: stage").click()
    tab.page.get_by_role("menuitem", name="hostile").click()
    tab.ask(hostile_agent.ALL.replace("\x00", "") + hostile_agent.MARKDOWN)
    expect(tab.button("Approve")).to_be_visible()
    return tab


def open_all(tab: Tab) -> None:
    """Open all rows by script: a row may have scrolled away before a click of the mouse."""
    tab.wait(
        """closed => {
          const line = document.querySelector(closed);
          line?.click();
          return line === null;
        }""",
        ".tool-line[aria-expanded=false], .lane-head[aria-expanded=false]",
    )


def unharmed(tab: Tab) -> None:
    """Check the document. Console, dialogs and requests are checked for every test."""
    assert tab.page.evaluate("window.pwned") is None
    assert "pwned title" not in tab.page.title()
    assert tab.page.evaluate(TURNED) == [], "texts that turn others around"
    inside = tab.page.evaluate(
        """() => [...document.querySelectorAll("script, iframe, object, embed, base, form, link, style, a, img, svg *")]
          .filter(one => !document.head.contains(one))
          .map(one => [
            one.tagName, one.getAttribute("href") ?? one.getAttribute("src") ?? "", one.outerHTML.slice(0, 200)
          ])"""
    )
    for tag, address, html in inside:
        assert tag.lower() not in ("iframe", "object", "embed", "base", "link"), html
        assert tag != "SCRIPT" or address.startswith(("./", "/", tab.url)), html
        assert not re.match(r"\s*(javascript|vbscript|data:text)", address, re.IGNORECASE), html
        assert tag != "IMG" or not address.startswith("http") or address.startswith(tab.url), html
    handlers = tab.page.evaluate(
        """() => [...document.querySelectorAll("*")].filter(one =>
          [...one.attributes].some(each => each.name.startsWith("on"))).map(one => one.outerHTML.slice(0, 200))"""
    )
    assert handlers == []


@pytest.mark.requirement("page-hostile-output")
def test_hostile_text_in_the_conversation_is_inert(attacked: Tab) -> None:
    tab = attacked
    question = tab.page.get_by_role("region", name=re.compile("^Approve ask"))
    expect(question).to_contain_text(hostile_agent.TAG)
    expect(question).to_contain_text("⟨U+202E⟩")
    unharmed(tab)
    tab.button("Approve").click()
    tab.expect_end()
    answer = tab.answer
    expect(answer.get_by_text("a remote pixel")).to_be_visible()
    expect(answer.locator(".text-image-away").first).to_contain_text("http://evil.invalid/pixel.png")
    for words in ("a script link", "a data link", "vb", "ref"):
        expect(answer.get_by_role("link", name=words, exact=True)).to_have_count(0)
    outside = answer.get_by_role("link", name="elsewhere")
    expect(outside).to_have_attribute("target", "_blank")
    expect(outside).to_have_attribute("rel", re.compile("noopener"))
    unharmed(tab)


def test_hostile_text_in_steps_is_inert(attacked: Tab) -> None:
    tab = attacked
    tab.page.set_viewport_size({"width": 1440, "height": 8000})
    open_all(tab)
    unharmed(tab)
    tab.chat.evaluate("box => { box.scrollTop = 0 }")
    expect(tab.page.locator(".todo").first).to_contain_text(hostile_agent.SCRIPT)
    expect(tab.page.locator(".tool-name", has_text="tool <img src=x onerror=")).to_be_visible()
    expect(tab.page.locator(".tool-error").first).to_contain_text(hostile_agent.SCRIPT)
    expect(tab.page.locator(".lane-name")).to_contain_text(hostile_agent.TAG)


@pytest.mark.requirement("page-hostile-output")
def test_hostile_text_in_panes_and_titles_is_inert(attacked: Tab, stage: Stage) -> None:
    tab = attacked
    for pane in ("Code", "Terminal", "Timeline", "Files"):
        tab.pick_pane(pane)
        expect(tab.page.get_by_role("tabpanel").get_by_text("Loading …")).to_have_count(0)
        unharmed(tab)
    tab.pick_pane("Terminal")
    expect(tab.page.locator(".xterm-rows")).to_contain_text("painted")
    expect(tab.page.locator(".xterm-rows a")).to_have_count(0)
    tab.button("Approve").click()
    tab.expect_end()
    title = hostile_agent.TAG + hostile_agent.TURN + hostile_agent.SVG[:60]
    httpx.patch(f"{stage.url}/sessions/{tab.session_id}", json={"title": title}).raise_for_status()
    tab.page.reload()
    expect(tab.page.get_by_role("heading", level=1)).to_contain_text(hostile_agent.TAG)
    tab.page.get_by_role("navigation", name="Conversations").get_by_role("link", name=hostile_agent.TAG).first.hover()
    tab.page.keyboard.press("Control+k")
    expect(tab.page.get_by_role("option").filter(has_text=hostile_agent.TAG).first).to_be_visible()
    unharmed(tab)


def test_hostile_text_in_search_results_is_inert(attacked: Tab) -> None:
    tab = attacked
    tab.button("Search in steps and results").click()
    tab.page.get_by_role("textbox", name="Search in steps and results").fill("onerror")
    expect(tab.page.locator(".hit").first).to_be_visible()
    open_all(tab)
    unharmed(tab)


def test_hostile_text_in_an_error_is_inert(new_tab: NewTab) -> None:
    tab = new_tab().open()
    tab.button("Agent: stage").click()
    tab.page.get_by_role("menuitem", name="hostile").click()
    tab.ask("crash")
    expect(tab.page.locator(".run-failure")).to_contain_text(hostile_agent.SCRIPT)
    unharmed(tab)


@pytest.mark.requirement("page-hostile-output")
def test_content_security_policy_blocks_inline_scripts(tab: Tab, stage: Stage) -> None:
    response = tab.page.goto(stage.url)
    assert response is not None
    rules = dict(
        part.strip().split(" ", 1) for part in response.headers["content-security-policy"].split(";") if part.strip()
    )
    assert rules["default-src"] == "'none'" and rules["script-src"] == "'self'" and rules["connect-src"] == "'self'"
    assert rules["base-uri"] == rules["form-action"] == rules["frame-ancestors"] == "'none'"
    assert "http" not in rules["img-src"]
    expect(tab.field).to_be_visible()
    tab.forgive("Content Security Policy")
    tab.page.evaluate(
        "document.body.append(Object.assign(document.createElement('script'), {text: 'window.pwned = 1'}))"
    )
    assert tab.page.evaluate("window.pwned") is None
