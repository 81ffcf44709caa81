"""Sources below the answer: limits, and escaped text."""

import json
from types import SimpleNamespace
from typing import Any

import pytest

from tests.openwebui.function_rules import Json, pipe_module


class CitationRecorder:
    """Returns the sources for frames."""

    def __init__(self) -> None:
        self._state = pipe_module().RunState()
        options = SimpleNamespace(tool_citations=True)
        self._citations = pipe_module().Citations(self._state, lambda: "run_0", options)

    def feed(self, frame_type: str, **data: Any) -> list[Json]:
        frame = pipe_module().Frame(frame_type, data)
        self._state.feed(frame)
        return [event["data"] for event in self._citations.feed(frame)]

    def call(self, number: int, args: Json, result: str) -> Json:
        call = {"tool_id": f"c{number}", "name": "search", "agent_depth": 0}
        self.feed("tool_start", args=args, **call)
        return self.feed("tool_end", result=result, **call)[0]


def test_results_beyond_the_limit_of_a_message_are_previews() -> None:
    citations = CitationRecorder()
    sources = [citations.call(number, {"q": 1}, "x" * 40_000) for number in range(40)]
    lengths = [len(source["document"][0]) for source in sources]
    assert lengths[:7] == [lengths[0]] * 7
    assert sources[0]["document"][0] == f"\u200b{'x' * 32_000}\n\n… (40,000 characters in all)"
    assert sources[-1]["document"][0] == f"\u200b{'x' * 500}\n\n… (40,000 characters in all)"
    assert len(json.dumps(sources)) < 300_000


def test_short_result_within_the_limit_of_a_message_is_complete() -> None:
    citations = CitationRecorder()
    for number in range(7):
        citations.call(number, {}, "x" * 32_000)
    assert citations.call(8, {}, "y" * 20_000)["document"] == [f"\u200b{'y' * 20_000}"]


@pytest.mark.parametrize(
    ("result", "fence"), [("<b>x</b>", "```"), ("a `b` ``` c", "````"), ("```html\n<b>\n```\n`````", "``````")]
)
def test_result_is_a_code_block_with_a_longer_fence_than_its_content(result: str, fence: str) -> None:
    assert CitationRecorder().call(1, {}, result)["document"] == [f"{fence}\n{result}\n{fence}"]


def test_result_with_long_lines_is_escaped_text_that_wraps() -> None:
    text = f"# {'bees ' * 20}\n\n- <b>*x*</b>\n---"
    shown = f"|# {'bees ' * 20}  \n|  \n|- <|b>\\*x\\*<|/b>  \n|---"
    assert CitationRecorder().call(1, {}, text)["document"] == [shown.replace("|", "\u200b")]


def test_indented_result_with_long_lines_is_a_code_block() -> None:
    text = f'{{\n  "bees": "{"bees " * 20}"\n}}'
    assert CitationRecorder().call(1, {}, text)["document"] == [f"```\n{text}\n```"]


def test_cited_text_keeps_its_layout_and_loads_no_images() -> None:
    text = "# Bees\n\n* **dance** ![](https://example.org/x.png)\n* <img src=x> {{HTML_FILE_ID_a}}"
    (source,) = CitationRecorder().feed("citation", title="Bees", url="https://example.org", text=text)
    shown = "# Bees\n\n* **dance** ![]|(https://example.org/x.png)\n* <|img src=x> {|{HTML_FILE_ID_a}}"
    assert source["document"] == [shown.replace("|", "\u200b")]


def test_long_arguments_are_previews() -> None:
    citations = CitationRecorder()
    assert citations.call(1, {"q": "x" * 20_000}, "y")["metadata"][0]["parameters"] == {"q": "x" * 20_000}
    sources = [citations.call(number, {"q": "x" * 90_000}, "y") for number in range(2, 30)]
    parameters = sources[0]["metadata"][0]["parameters"]
    assert parameters["arguments"].endswith("… (90,009 characters in all)")
    assert len(json.dumps(sources)) < 30_000


@pytest.mark.parametrize("sources", ["https://example.org", {"url": "x"}, 3, None])
def test_invalid_sources_of_an_answer_are_ignored(sources: Any) -> None:
    assert CitationRecorder().feed("answer", title="", content="x", sources=sources) == []


def test_sources_of_an_answer_are_listed() -> None:
    sources = CitationRecorder().feed("answer", title="", content="x", sources=["https://example.org", "a book"])
    assert [source["source"]["name"] for source in sources] == ["https://example.org", "a book"]


def test_source_of_an_answer_is_cited_by_its_title_and_links_to_its_url() -> None:
    links = [
        {"title": "Bees", "url": "https://example.org/bees"},
        {"title": "", "url": "https://example.org/winter"},
        {"title": "A book", "url": ""},
    ]
    texts = ["[Bees](https://example.org/bees)", "https://example.org/winter", "A book"]
    sources = CitationRecorder().feed("answer", title="", content="x", sources=texts, source_links=links)
    assert [source["source"]["name"] for source in sources] == ["Bees", "https://example.org/winter", "A book"]
    assert [source["source"].get("url") for source in sources] == [links[0]["url"], links[1]["url"], None]
    assert [source["document"] for source in sources] == [["Bees"], ["https://example.org/winter"], ["A book"]]


@pytest.mark.parametrize("links", ["x", 3, None, [], [3], [{"title": None}]])
def test_invalid_links_of_sources_do_not_break_the_answer(links: Any) -> None:
    sources = CitationRecorder().feed("answer", title="", content="x", sources=["a book"], source_links=links)
    assert [source["source"]["name"] for source in sources] == ["a book"]
