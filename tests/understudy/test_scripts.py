"""Scripts are read whole, and a mistake in one is named with its place."""

from pathlib import Path

import pytest

from limelight.errors import SetupError
from limelight.understudy.scripts import Script, ScriptedCall, Step, Turn, load_scripts, parse_scripts


def test_a_list_of_turns_is_one_script() -> None:
    text = """
    - steps:
        - reasoning: Hm.
        - text: Let me look.
        - delay: 0.5
        - tool_calls:
            - {name: ls, arguments: {path: /}}
            - {name: grep, raw: '{"pattern": ', id: mine}
    - steps:
        - usage: {input: 1, output: 2}
        - cut: true
        - finish_reason: length
        - error: {status: 429, message: slow down, code: rate}
    """
    (script,) = parse_scripts(text)
    assert script.match == ""
    assert [len(turn.steps) for turn in script.turns] == [4, 4]
    assert script.turns[0].steps[3].tool_calls == (
        ScriptedCall("ls", {"path": "/"}),
        ScriptedCall("grep", raw='{"pattern": ', id="mine"),
    )


def test_several_scripts_in_a_file(tmp_path: Path) -> None:
    path = tmp_path / "s.yaml"
    path.write_text("- match: rain\n  turns: [{steps: [{text: wet}]}]\n- turns: [{steps: [{text: dry}]}]\n")
    assert load_scripts(path) == (
        Script((Turn((Step(text="wet"),)),), "rain"),
        Script((Turn((Step(text="dry"),)),)),
    )


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a: 1", "s.yaml: a script is a list of turns"),
        ("[]", "s.yaml: a script is a list of turns"),
        ("- [", "s.yaml is not valid YAML: "),
        ("- 7", "s.yaml: turn 1 is an object with `steps`, not 7"),
        ("- {}", "s.yaml: turn 1 needs `steps`, a list"),
        ("- stebs: []", "s.yaml: turn 1 has no key `stebs`: did you mean `steps`?"),
        ("- steps: [{text: a}]\n- steps: [{txt: a}]", "s.yaml: turn 2, step 1 has no key `txt`: did you mean `text`?"),
        ("- steps: [{text: a, delay: 1}]", "s.yaml: turn 1, step 1 has one key, not 2"),
        ("- steps: [{text: }]", "s.yaml: turn 1, step 1, `text` is empty"),
        ("- steps: [{text: 7}]", "s.yaml: turn 1, step 1, `text`: Expected `str | null`, got `int`"),
        ("- steps: [{delay: -1}]", "s.yaml: turn 1, step 1, `delay`: Expected `float` >= 0"),
        ("- steps: [{error: {}}]", "s.yaml: turn 1, step 1, `error`: Object missing required field `status`"),
        ("- steps: [{error: {status: 200}}]", "s.yaml: turn 1, step 1, `error.status`: Expected `int` >= 400"),
        ("- steps: [{tool_calls: []}]", "s.yaml: turn 1, step 1, `tool_calls`: "),
        ("- steps: [{tool_calls: [{}]}]", "`tool_calls[0]`: Object missing required field `name`"),
        ("- steps: [{tool_calls: [{name: a, args: {}}]}]", "contains unknown field `args`"),
        ("- steps: [{tool_calls: [{name: a, raw: x, arguments: {a: 1}}]}]", "`arguments` or `raw`, not both"),
        ("- steps: [{usage: {input: -1}}]", "s.yaml: turn 1, step 1, `usage.input`: "),
        ("- match: a\n  turns: [{steps: [{x: 1}]}]", "s.yaml: script 1, turn 1, step 1 has no key `x`: it knows text,"),
        ("- match: 5\n  turns: [{steps: [{cut: true}]}]", "s.yaml: script 1, `match`: a text"),
        ("- match: a", "s.yaml: script 1 needs `turns`, a list"),
    ],
)
def test_a_mistake_is_named_with_its_place(text: str, said: str) -> None:
    with pytest.raises(SetupError) as caught:
        parse_scripts(text, "s.yaml")
    assert said in caught.value.detail
    assert "\n" not in caught.value.detail


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(SetupError, match=r"missing\.yaml cannot be read: No such file"):
        load_scripts(tmp_path / "missing.yaml")
