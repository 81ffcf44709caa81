"""Lines of the keys in a TOML file."""

import tomllib
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from limelight.config.setting_locations import key_lines

EXAMPLE = '''\
# a comment with [brackets] and = signs
[server]            # trailing
port = 1
"host" = "a # b"
'default_format' = 'x'

[ agents . "my bot" ]
target = """
[not.a.table]
key = 5
"""
status = { ls = "Looking", "read file" = 'Reading' }   # after
imports = [
  "math",  # with = a comment
  "re",
]
when = 1979-05-27 07:32:00

[agents.other.status]
grep = "Searching"

[store]
x.y.z = {a = {b = [{c = 1}]}}
'''


@pytest.mark.parametrize(
    ("path", "line"),
    [
        (("server",), 2),
        (("server", "port"), 3),
        (("server", "host"), 4),
        (("server", "default_format"), 5),
        (("agents",), 7),
        (("agents", "my bot"), 7),
        (("agents", "my bot", "target"), 8),
        (("agents", "my bot", "status"), 12),
        (("agents", "my bot", "status", "read file"), 12),
        (("agents", "my bot", "imports"), 13),
        (("agents", "my bot", "when"), 17),
        (("agents", "other"), 19),
        (("agents", "other", "status", "grep"), 20),
        (("store", "x", "y"), 23),
        (("store", "x", "y", "z", "a", "b"), 23),
        (("not",), None),
        (("key",), None),
        (("unknown",), None),
    ],
)
def test_key_lines_has_the_line_of_each_key(path: tuple[str, ...], line: int | None) -> None:
    tomllib.loads(EXAMPLE)
    assert key_lines(EXAMPLE).get(path) == line


def test_key_lines_reads_all_quotes_and_line_ends() -> None:
    text = 'a = """x""""\r\nb = \'\'\'y\'\'\'\'\'\r\n"c\\u0021" = "\\""\r\n[[d]]\r\ne = []\r\n'
    assert list(tomllib.loads(text)) == ["a", "b", "c!", "d"]
    assert key_lines(text) == {("a",): 1, ("b",): 2, ("c!",): 3, ("d",): 4, ("d", "e"): 5}


@pytest.mark.parametrize("text", ["[server", "a", "a = ", "= 5", "a = [", "a = {b", "é = 1", 'a = "x'])
def test_invalid_toml_has_no_lines(text: str) -> None:
    assert key_lines(text) == {}


@given(st.text(alphabet="ab[]{}=.,#\"'\n \\5", max_size=30))
def test_every_key_of_valid_toml_has_a_line_in_its_statement(text: str) -> None:
    """A key is on the line of its statement, or on a later line of a statement that has several."""
    try:
        values = tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        key_lines(text)  # raises nothing
        return
    found = key_lines(text)
    for path in paths(values):
        assert path in found
        if path[-1].isalnum():
            assert path[-1] in "\n".join(text.split("\n")[found[path] - 1 :])


def paths(values: dict[str, Any], before: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
    found: list[tuple[str, ...]] = []
    for key, value in values.items():
        found.append((*before, key))
        if isinstance(value, dict):
            found += paths(cast("dict[str, Any]", value), (*before, key))
    return found
