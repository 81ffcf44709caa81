"""Sources below the answer: the whole chat is stored anew with each of them, so they have a limit together."""

import json
from types import SimpleNamespace
from typing import Any

import pytest

from tests.openwebui.function_rules import Json, pipe_module


class Cited:
    def __init__(self) -> None:
        self._story = pipe_module().RunState()
        choices = SimpleNamespace(tool_citations=True)
        self._citations = pipe_module().Citations(self._story, lambda: "run_0", choices)

    def feed(self, kind: str, **data: Any) -> list[Json]:
        frame = pipe_module().Frame(kind, data)
        self._story.feed(frame)
        return [event["data"] for event in self._citations.feed(frame)]

    def call(self, number: int, args: Json, result: str) -> Json:
        about = {"tool_id": f"c{number}", "name": "search", "agent_depth": 0}
        self.feed("tool_start", args=args, **about)
        return self.feed("tool_end", result=result, **about)[0]


def test_many_long_results_become_previews() -> None:
    cited = Cited()
    found = [cited.call(number, {"q": 1}, "x" * 40_000) for number in range(40)]
    lengths = [len(source["document"][0]) for source in found]
    assert lengths[:7] == [lengths[0]] * 7
    assert found[0]["document"][0] == f"\u200b{'x' * 32_000}\n\n… (40,000 characters in all)"
    assert found[-1]["document"][0] == f"\u200b{'x' * 500}\n\n… (40,000 characters in all)"
    assert len(json.dumps(found)) < 300_000


def test_a_short_one_is_whole_as_long_as_there_is_room() -> None:
    cited = Cited()
    for number in range(7):
        cited.call(number, {}, "x" * 32_000)
    assert cited.call(8, {}, "y" * 20_000)["document"] == [f"\u200b{'y' * 20_000}"]


@pytest.mark.parametrize(
    ("result", "fence"), [("<b>x</b>", "```"), ("a `b` ``` c", "````"), ("```html\n<b>\n```\n`````", "``````")]
)
def test_a_result_is_code_that_nothing_in_it_ends(result: str, fence: str) -> None:
    assert Cited().call(1, {}, result)["document"] == [f"{fence}\n{result}\n{fence}"]


def test_a_result_of_long_lines_is_text_that_wraps() -> None:
    text = f"# {'bees ' * 20}\n\n- <b>*x*</b>\n---"
    shown = f"|# {'bees ' * 20}  \n|  \n|- <|b>\\*x\\*<|/b>  \n|---"
    assert Cited().call(1, {}, text)["document"] == [shown.replace("|", "\u200b")]


def test_a_result_of_long_lines_that_is_indented_is_code() -> None:
    text = f'{{\n  "bees": "{"bees " * 20}"\n}}'
    assert Cited().call(1, {}, text)["document"] == [f"```\n{text}\n```"]


def test_what_is_cited_keeps_its_layout_and_loads_nothing() -> None:
    text = "# Bees\n\n* **dance** ![](https://example.org/x.png)\n* <img src=x> {{HTML_FILE_ID_a}}"
    (source,) = Cited().feed("citation", title="Bees", url="https://example.org", text=text)
    shown = "# Bees\n\n* **dance** ![]|(https://example.org/x.png)\n* <|img src=x> {|{HTML_FILE_ID_a}}"
    assert source["document"] == [shown.replace("|", "\u200b")]


def test_long_arguments_are_cut_too() -> None:
    cited = Cited()
    assert cited.call(1, {"q": "x" * 20_000}, "y")["metadata"][0]["parameters"] == {"q": "x" * 20_000}
    found = [cited.call(number, {"q": "x" * 90_000}, "y") for number in range(2, 30)]
    parameters = found[0]["metadata"][0]["parameters"]
    assert parameters["arguments"].endswith("… (90,009 characters in all)")
    assert len(json.dumps(found)) < 30_000


@pytest.mark.parametrize("sources", ["https://example.org", {"url": "x"}, 3, None])
def test_sources_of_an_answer_that_are_no_list_are_none(sources: Any) -> None:
    assert Cited().feed("answer", title="", content="x", sources=sources) == []


def test_sources_of_an_answer() -> None:
    found = Cited().feed("answer", title="", content="x", sources=["https://example.org", "a book"])
    assert [source["source"]["name"] for source in found] == ["https://example.org", "a book"]
