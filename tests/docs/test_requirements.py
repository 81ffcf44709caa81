"""Every requirement of `docs/requirements.md` has a test, and every test names a requirement that is listed there.

The tests are read and not run or imported, so that those of `tests/system` and of the page are seen too.
"""

import ast
import re
from collections.abc import Iterator
from typing import NamedTuple

import pytest

from tests.support.documents import DOCS, ROOT, read
from tests.support.markdown import anchors, codes, rows, sections

ID = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")
LINK = re.compile(r"\[[^]]+\]\(([^)#]+)#([^)]+)\)")
MARK = "pytest.mark." + "requirement"
COMMENT = re.compile(r"^ *// requirement: (.+)\n *(it|test)\b", re.MULTILINE)


class Requirement(NamedTuple):
    """One row of the document."""

    requirement_id: str
    text: str
    section: str


REQUIREMENTS = [Requirement(row[0].strip("`"), *row[1:]) for row in rows(read("docs/requirements.md"))]


def ids_of_pytest(source: str) -> Iterator[str]:
    """The ids in the marks of test functions. A mark in any other place is an error, because it shows nothing."""
    marks = 0
    for node in ast.walk(ast.parse(source)):
        for mark in getattr(node, "decorator_list", []):
            if ast.unparse(mark).startswith(MARK):
                assert isinstance(mark, ast.Call) and mark.args, ast.unparse(mark)
                assert isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef), ast.unparse(mark)
                assert node.name.startswith("test_"), f"{node.name} is not a test"
                marks += 1
                for argument in mark.args:
                    yield ast.literal_eval(argument)
    assert marks == source.count("mark.requirement"), "a mark is not the decorator of a test"


def ids_of_vitest(source: str) -> Iterator[str]:
    """The ids in the comments above tests. Such a comment in another place is an error, because it shows nothing."""
    found = COMMENT.findall(source)
    assert len(found) == source.count("// requirement: "), "a requirement is not directly above a test"
    for names, _ in found:
        yield from names.split(", ")


def marked_tests() -> dict[str, set[str]]:
    """The files that have tests of each requirement."""
    found: dict[str, set[str]] = {}
    files = [*(ROOT / "tests").rglob("*.py"), *(ROOT / "web" / "src").rglob("*.test.ts*")]
    for path in files:
        source = path.read_text()
        if path.suffix == ".py":
            ids = ids_of_pytest(source) if MARK in source else iter(())
            assert path.name.startswith("test_") or MARK not in source, f"pytest ignores {path}"
        else:
            ids = ids_of_vitest(source)
        for requirement_id in ids:
            found.setdefault(requirement_id, set()).add(str(path.relative_to(ROOT)))
    return found


def test_every_requirement_has_a_test_and_every_marked_test_a_requirement() -> None:
    listed = {requirement.requirement_id for requirement in REQUIREMENTS}
    marked = marked_tests()
    assert sorted(listed - marked.keys()) == [], "these requirements have no test"
    assert {name: marked[name] for name in marked.keys() - listed} == {}, "these requirements are not listed"


def test_requirement_ids_are_unique_and_well_formed() -> None:
    ids = [requirement.requirement_id for requirement in REQUIREMENTS]
    assert len(ids) == len(set(ids))
    assert all(ID.fullmatch(requirement_id) for requirement_id in ids)


@pytest.mark.parametrize("requirement", REQUIREMENTS, ids=lambda requirement: requirement.requirement_id)
def test_section_that_states_a_requirement_exists(requirement: Requirement) -> None:
    link = LINK.fullmatch(requirement.section)
    assert link is not None, requirement.section
    document, anchor = link.groups()
    assert anchor in anchors((DOCS / document).read_text())
    assert requirement.text.endswith(".")


def test_requirements_that_the_faults_name_exist() -> None:
    listed = {requirement.requirement_id for requirement in REQUIREMENTS}
    faults = rows(sections(read("docs/faults.md"), 2)["Faults and requirements"])
    assert len(faults) > 20
    for fault, named in faults:
        assert codes(named), fault
        assert codes(named) <= listed, fault


def test_marks_of_pytest_are_found_on_tests_only() -> None:
    mark = f'@{MARK}("a", "b-1")\n'
    assert list(ids_of_pytest(f"{mark}async def test_x(): ...\n")) == ["a", "b-1"]
    for other in (f"{mark}def helper(): ...", f"{mark}class TestX: ...", f'pytestmark = {MARK}("c")'):
        with pytest.raises(AssertionError):
            list(ids_of_pytest(f"{other}\n"))


def test_marks_of_vitest_are_found_above_tests_only() -> None:
    assert list(ids_of_vitest('  // requirement: a, b-1\n  it.each([1])("%j", x);\n')) == ["a", "b-1"]
    with pytest.raises(AssertionError, match="not directly above"):
        list(ids_of_vitest("// requirement: a\nconst x = 1;\n"))
