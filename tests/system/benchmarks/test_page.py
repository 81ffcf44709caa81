"""The page benchmark: which files count as the initial load, and what the report contains."""

from pathlib import Path

import msgspec
import pytest

from benchmarks.page import measurement
from benchmarks.page.agents import long_answer
from benchmarks.page.initial_load import first_load, first_scripts
from benchmarks.page.measurement import PageFigures, PagePlan, measure_page
from benchmarks.page.report import page_section, page_table
from benchmarks.report import with_section

FIGURES = PageFigures(
    load=0.5,
    script=210_000,
    open_run=[900.0, 1100.0],
    open_runs=[1000.0, 1200.0],
    open_heap=17e6,
    nodes=1000,
    wheel=[16.7] * 200,
    drag=[16.7] * 190 + [80.0] * 10,
    keys=[16.0] * 99 + [40.0],
    keys_long=[24.0] * 90 + [300.0] * 10,
    answer_tasks=[],
    stream_heap=3e6,
    stream_text=70e3,
)


def test_first_load_is_the_entry_with_its_static_imports(tmp_path: Path) -> None:
    assets = tmp_path / "assets"
    assets.mkdir()
    (tmp_path / "index.html").write_text(
        '<script src="./theme.js"></script><script type="module" crossorigin src="./assets/a.js"></script>'
    )
    (tmp_path / "theme.js").write_bytes(b"t" * 7)
    (assets / "a.js").write_text('import{b}from"./b.js";import"./c.js";import(`./lazy.js`);import("./lazy.js")')
    (assets / "a.js.gz").write_bytes(b"a" * 100)
    (assets / "b.js").write_text('import{c}from"./c.js";')
    (assets / "c.js").write_text("c")
    (assets / "lazy.js").write_text("never" * 1000)
    assert sorted(file.name for file in first_scripts(tmp_path)) == ["a.js", "b.js", "c.js", "theme.js"]
    assert first_load(tmp_path) == 7 + 100 + 22 + 1


def test_report_shows_for_each_aim_whether_it_was_met() -> None:
    verdicts = [line.split("|")[4].strip() for line in page_table(FIGURES, PagePlan()).splitlines()[2:]]
    assert verdicts == ["met", "met", "met", "", "missed", "", "met", "met", "met", "missed", "met", "met", "", ""]
    slow = msgspec.structs.replace(FIGURES, answer_tasks=[51.0, 60.0], script=400_000)
    table = page_table(slow, PagePlan())
    assert "| 60.0 " in table
    assert table.count("missed") == 4
    assert "it never had more than 1,000 elements" in page_section(FIGURES, PagePlan())


def test_section_replaces_the_one_with_the_same_title() -> None:
    document = "# A\n\n## B\n\nb\n"
    once = with_section(document, "## The page\n\none\n")
    assert once == "# A\n\n## B\n\nb\n\n## The page\n\none\n"
    assert with_section(once, "## The page\n\ntwo\n") == once.replace("one", "two")
    between = "# A\n\n## The page\n\none\n\n## C\n\nc\n"
    assert with_section(between, "## The page\n\ntwo\n") == between.replace("one", "two")


def test_page_is_not_measured_without_chromium(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measurement, "chromium", lambda: None)
    logged: list[str] = []
    assert measure_page(PagePlan(), logged.append) is None
    assert "no chromium" in logged[0]
    assert "Not measured" in page_section(None, PagePlan())


def test_long_answer_has_code_tables_and_the_requested_tokens() -> None:
    tokens = list(long_answer(3000))
    text = "".join(tokens)
    assert 3000 <= len(tokens) < 4500
    assert text.count("```python") >= 3
    assert text.count("|---|") >= 3
