"""Whether an answer is structured is decided once: a second pass changes nothing, and all clients get the same."""

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from limelight.display_fields import DisplayFields
from limelight.events import AnyEvent, FinalAnswer, SourceLink
from limelight.runs.truncation import fit
from limelight.structured_answers import MAX_PARSED, source_link, with_parts
from tests.support.strategies import json_values, legal_runs, tangled_runs

NESTED = {"title": "T", "content": {"title": "inner", "content": "c"}}


def _written(value: Any) -> SearchStrategy[Any]:
    """The forms in which agents write an object: itself, JSON, a Python literal; fenced, and with prefixes."""
    text = json.dumps(value)
    forms = (value, text, repr(value), f"```json\n{text}\n```", f"```\n{text}\n```")
    prefixes = st.sampled_from(["", "Final answer:", " Final answer: ", "Final answer: Final answer:\n", "\n "])
    return st.tuples(st.sampled_from(forms), prefixes).map(_with_prefix)


def _with_prefix(form_and_prefix: tuple[Any, str]) -> Any:
    form, prefix = form_and_prefix
    return f"{prefix}{form}" if isinstance(form, str) else form


def contents() -> SearchStrategy[Any]:
    """Contents of answers: objects with the keys of answers, nested in each other in every form."""
    plain = st.sampled_from(["c", "", "Final answer: x", "Final answer: Final answer: x", "```\n{}\n```"])
    keys = st.sampled_from(["title", "content", "sources", "other"])
    return st.recursive(
        plain | json_values(),
        lambda inner: st.dictionaries(keys, inner | st.lists(inner, max_size=2), max_size=4).flatmap(_written),
        max_leaves=6,
    )


def answers() -> SearchStrategy[FinalAnswer]:
    """Answers of agents, some of which have a title or sources already."""
    sources = st.sampled_from([(), ("https://example.org/a",), ("A book", "Docs — https://example.org/b.")])
    titles = st.sampled_from(["", "Mine"])
    return st.builds(FinalAnswer, content=contents(), title=titles, sources=sources)


@pytest.mark.requirement("derived-once")
@given(answers())
def test_second_pass_changes_no_answer(answer: FinalAnswer) -> None:
    once = with_parts(answer)
    assert with_parts(once) == once
    assert len(once.source_links) == len(once.sources)


@pytest.mark.requirement("derived-once")
@given(answers(), st.sampled_from([0, 40_000, 70_000]))
def test_second_pass_changes_no_answer_of_the_log(answer: FinalAnswer, padding: int) -> None:
    if isinstance(answer.content, dict):
        answer = msgspec.structs.replace(answer, content={**answer.content, "note": "x" * padding})
    elif isinstance(answer.content, str):
        answer = msgspec.structs.replace(answer, content=answer.content + " " * padding)
    for logged in fit(answer, "run_1", 10**6, present=DisplayFields().add_to).events:
        assert DisplayFields().add_to(logged) == logged


@pytest.mark.requirement("derived-once")
@given(legal_runs() | tangled_runs())
def test_second_pass_changes_no_event(run: list[AnyEvent]) -> None:
    first, second = DisplayFields(), DisplayFields()
    logged = [part for event in run for part in _fitted(event, first)]
    assert [second.add_to(event) for event in logged] == logged


def _fitted(event: AnyEvent, fields: DisplayFields) -> list[AnyEvent]:
    return fit(event, "run_1", 10**6, present=fields.add_to).events


@pytest.mark.parametrize("content", [NESTED, json.dumps(NESTED)], ids=["dict", "json"])
def test_content_of_a_structured_answer_is_literal(content: Any) -> None:
    answer = with_parts(FinalAnswer(content=content))
    assert (answer.title, answer.content) == ("T", '{"title":"inner","content":"c"}')
    assert answer.data == NESTED
    assert with_parts(answer) == answer


@pytest.mark.parametrize("given_", [{"title": "Mine"}, {"sources": ("a book",)}, {"data": {"a": 1}}])
def test_text_of_an_answer_that_its_agent_has_structured_is_literal(given_: dict[str, Any]) -> None:
    for text in ('{"title": "inner", "content": "c"}', "Final answer: x"):
        answer = with_parts(FinalAnswer(content=text, **given_))
        assert answer.content == text
        assert answer.title == given_.get("title", "")


@pytest.mark.parametrize("text", ["Final answer: Final answer: x", "Final answer:Final answer:\n x"])
def test_repeated_prefix_is_removed_at_once(text: str) -> None:
    assert with_parts(FinalAnswer(content=text)).content == "x"


def test_many_prefixes_do_not_take_long() -> None:
    assert with_parts(FinalAnswer(content="Final answer: " * (MAX_PARSED // 14))).content == ""


def test_preview_of_truncated_content_is_literal() -> None:
    value = {"content": json.dumps({"title": "inner", "content": "c"}), "note": "x" * 40_000}
    (logged,) = fit(FinalAnswer(content=value), "run_1", 10**6, present=DisplayFields().add_to).events
    assert isinstance(logged, FinalAnswer)
    assert (logged.truncated, logged.title, logged.content) == (True, "", value["content"])
    assert with_parts(logged) == logged


@pytest.mark.parametrize(
    ("text", "title", "url"),
    [
        ("https://example.org/a", "", "https://example.org/a"),
        ("Docs — https://example.org/a.", "Docs", "https://example.org/a"),
        ("Docs: https://example.org/a", "Docs", "https://example.org/a"),
        ("Docs (https://example.org/a)", "Docs", "https://example.org/a"),
        ("Docs (v2) - <https://example.org/a>", "Docs (v2)", "https://example.org/a"),
        ("https://example.org/a — Docs", "Docs", "https://example.org/a"),
        ("Docs — https://example.org/a (2020)", "Docs (2020)", "https://example.org/a"),
        ("See https://example.org/a, page 7.", "See page 7", "https://example.org/a"),
        ("[Docs](https://example.org/a)", "Docs", "https://example.org/a"),
        ("- [Docs]( <https://example.org/a> )", "Docs", "https://example.org/a"),
        ('[1] [Docs](https://example.org/a "Hint")', "Docs", "https://example.org/a"),
        ("[1](https://example.org/a)", "1", "https://example.org/a"),
        ("[1] https://example.org/a", "", "https://example.org/a"),
        ("[2]: Docs, https://example.org/a", "Docs", "https://example.org/a"),
        ("https://en.example.org/wiki/A_(b)", "", "https://en.example.org/wiki/A_(b)"),
        ("(see https://en.example.org/wiki/A_(b)).", "(see", "https://en.example.org/wiki/A_(b)"),
        ("[A](https://en.example.org/wiki/A_(b))", "A", "https://en.example.org/wiki/A_(b)"),
        ("https://...", "https://...", ""),
        ("A book of 1999", "A book of 1999", ""),
        (" - A book", "A book", ""),
        ("[1]", "[1]", ""),
        ("javascript:alert(1)", "javascript:alert(1)", ""),
        ("[Docs](javascript:alert(1))", "[Docs](javascript:alert(1))", ""),
        ("", "", ""),
    ],
)
def test_title_and_url_of_a_source(text: str, title: str, url: str) -> None:
    assert source_link(text) == SourceLink(title, url)


@pytest.mark.parametrize(
    ("source", "link"),
    [
        (
            {"title": "Bees [1]", "url": "https://example.org/a_(b)."},
            SourceLink("Bees [1]", "https://example.org/a_(b)."),
        ),
        ({"name": "Bees", "link": "https://example.org/a"}, SourceLink("Bees", "https://example.org/a")),
        ({"url": "https://example.org/a"}, SourceLink("", "https://example.org/a")),
        ({"title": "Bees", "url": "page 7"}, SourceLink("Bees page 7")),
        ({"title": "Bees", "url": "javascript:alert(1)"}, SourceLink("Bees javascript:alert(1)")),
        ({"page": "https://example.org/a"}, SourceLink('{"page":"https://example.org/a"}')),
        ("Docs — https://example.org/a", SourceLink("Docs", "https://example.org/a")),
    ],
)
def test_source_link_has_the_title_and_the_url_of_the_agents_object(source: Any, link: SourceLink) -> None:
    answer = with_parts(FinalAnswer(content={"title": "t", "content": "c", "sources": [None, source]}))
    assert answer.source_links == (link,)


def test_sources_of_older_logs_and_of_agents_have_links() -> None:
    answer = with_parts(FinalAnswer(content="c", sources=("Docs — https://example.org/a", "A book")))
    assert answer.source_links == (SourceLink("Docs", "https://example.org/a"), SourceLink("A book"))


@given(st.text(alphabet="[]()<>-: ahtps/.\"'1\n—", max_size=60) | st.text(max_size=40))
def test_url_of_a_source_is_a_part_of_its_text(text: str) -> None:
    link = source_link(text)
    assert link.url in text
    assert not link.url or link.url.startswith(("http://", "https://"))
    assert link.title or link.url or not text.strip()


@pytest.mark.parametrize(
    "text", ["[a](" + "x)" * 200_000 + " ", "https://a" + ")" * 500_000, "[" * 500_000, "- " * 250_000]
)
def test_very_long_source_does_not_take_long(text: str) -> None:
    assert source_link(text).url in text
