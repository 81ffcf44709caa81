"""Environment files: their syntax, and which of their variables reach the environment."""

import pytest

from limelight.config.env_file import parse


@pytest.mark.parametrize(
    ("text", "variables"),
    [
        ("A=1", {"A": "1"}),
        ("\ufeff# comment\r\n\r\nexport A = two words # comment\r\nB=a#b", {"A": "two words", "B": "a#b"}),
        ('A="x\\ny \\"z\\" # no"\nB=\'raw ${A} \\n\'', {"A": 'x\ny "z" # no', "B": "raw ${A} \\n"}),
        ('KEY="-----BEGIN\nabc\n-----END"\nB=1', {"KEY": "-----BEGIN\nabc\n-----END", "B": "1"}),
        ("A=1\nB=${A}${HOST}\nC=${NONE:-x}${NONE}", {"A": "1", "B": "1bee.example", "C": "x"}),
        ("A=\nB=''\nC=#x", {"A": "", "B": "", "C": ""}),
        ('A=a"b', {"A": 'a"b'}),
    ],
)
def test_variables_are_parsed(text: str, variables: dict[str, str]) -> None:
    assert parse(text, {"HOST": "bee.example"}) == (variables, [])


@pytest.mark.parametrize(("text", "lines"), [("A=1\nnonsense\nB=2", [2]), ("A='x\nB=2", [1]), ('A="x" y', [1])])
def test_invalid_lines_are_numbered_and_do_not_affect_others(text: str, lines: list[int]) -> None:
    file = parse(text, {})
    assert file.invalid_lines == lines
    assert file.variables.get("B", "2") == "2"
