"""Scripts: parsed with errors that name their place, and played turn by turn."""

from pathlib import Path
from typing import Any

import pytest

from limelight.errors import SetupError
from limelight.understudy.replies import CallPiece, DisconnectPiece, ErrorPiece, TextPiece, TokenUsage
from limelight.understudy.scripts import Script, ScriptedCall, Step, Turn, load_scripts, parse_scripts, play
from tests.understudy.request_builders import build_request, read_reply, user


def test_list_of_turns_is_one_script() -> None:
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


def test_list_of_scripts_is_loaded_from_a_file(tmp_path: Path) -> None:
    path = tmp_path / "s.yaml"
    path.write_text("- match: rain\n  turns: [{steps: [{text: wet}]}]\n- turns: [{steps: [{text: dry}]}]\n")
    assert load_scripts(path) == (
        Script((Turn((Step(text="wet"),)),), "rain"),
        Script((Turn((Step(text="dry"),)),)),
    )


@pytest.mark.parametrize(
    ("text", "message"),
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
def test_error_message_names_the_place(text: str, message: str) -> None:
    with pytest.raises(SetupError) as caught:
        parse_scripts(text, "s.yaml")
    assert message in caught.value.detail
    assert "\n" not in caught.value.detail


def test_missing_file_is_a_setup_error(tmp_path: Path) -> None:
    with pytest.raises(SetupError, match=r"missing\.yaml cannot be read: No such file"):
        load_scripts(tmp_path / "missing.yaml")


ASSISTANT: dict[str, Any] = {"role": "assistant", "content": "x"}
TOOL_RESULT: dict[str, Any] = {"role": "tool", "tool_call_id": "c", "content": "y"}
THREE_TURNS = parse_scripts("[{steps: [{text: one}]}, {steps: [{text: two}]}, {steps: [{text: three}]}]")
TWO_SCRIPTS = parse_scripts(
    "[{match: Rain, turns: [{steps: [{text: wet}]}, {steps: [{text: wetter}]}]},"
    " {match: sun, turns: [{steps: [{text: dry}]}]}]"
)
TASK = user("New task:\nDo it")


@pytest.mark.parametrize(
    ("messages", "text"),
    [
        (["a"], "one"),
        ([{"role": "system", "content": "s"}, "a"], "one"),
        (["a", ASSISTANT, TOOL_RESULT, TOOL_RESULT], "two"),
        (["a", ASSISTANT, "b", ASSISTANT], "three"),
        (["a", ASSISTANT, ASSISTANT, ASSISTANT], "The script has ended: it has 3 turns, and this would be turn 4."),
        # smolagents writes results into user messages, and omits a reply that it could not parse
        ([TASK, ASSISTANT, user("Observation:\nfine")], "two"),
        ([user("New task:\nDo it\nError:\nbad JSON\nNow let's retry")], "two"),
        ([TASK, ASSISTANT, user("Observation:\nfine\nCall id: 1\nError:\nno")], "two"),
        ([TASK, ASSISTANT, user("Now proceed and carry out this plan.")], "two"),
    ],
)
def test_number_of_replies_selects_the_turn(messages: list[Any], text: str) -> None:
    assert read_reply(play(THREE_TURNS, build_request(*messages))).text == text


@pytest.mark.parametrize(
    ("messages", "text"),
    [
        (["will it RAIN?"], "wet"),
        (["will it rain?", ASSISTANT, TOOL_RESULT], "wetter"),
        (["will it rain?", ASSISTANT, "or will the sun shine?"], "dry"),
        (["snow?"], "The understudy has no script for this message; it has some for: 'Rain', 'sun'."),
    ],
)
def test_last_user_message_selects_the_script(messages: list[Any], text: str) -> None:
    assert read_reply(play(TWO_SCRIPTS, build_request(*messages))).text == text


def test_steps_become_pieces() -> None:
    text = """
    - steps:
        - reasoning: Well now.
        - delay: 0.25
        - text: "Two words "
        - tool_calls: [{name: a, arguments: {long: "enough for fragments é"}}, {name: b, raw: "{"}, {name: c, id: own}]
        - tool_calls: [{name: d}]
        - usage: {input: 3, output: 4}
    """
    reply = play(parse_scripts(text), build_request("a"))
    read = read_reply(reply)
    assert (read.text, read.reasoning) == ("Two words ", "Well now.")
    assert read.calls == [("a", '{"long": "enough for fragments é"}'), ("b", "{"), ("c", "{}"), ("d", "{}")]
    assert [piece.text for piece in reply.pieces if isinstance(piece, TextPiece)] == ["Two", " words", " "]
    assert {piece.delay for piece in reply.pieces} == {0, 0.25}
    ids = [piece.call_id for piece in reply.pieces if isinstance(piece, CallPiece) and piece.name]
    assert len(set(ids)) == 4
    assert ids[2] == "own"
    assert sum(isinstance(piece, CallPiece) and piece.index == 0 for piece in reply.pieces) > 2
    assert reply.usage == TokenUsage(3, 4)
    assert reply.finish_reason == "tool_calls"


def test_errors_and_disconnects_become_pieces() -> None:
    script = parse_scripts("[{steps: [{text: a}, {cut: true}]}, {steps: [{error: {status: 500, message: m}}]}]")
    assert play(script, build_request("x")).pieces[-1] == DisconnectPiece()
    failing = play(script, build_request("x", ASSISTANT))
    assert failing.pieces[0] == ErrorPiece(status=500, message="m", type="understudy_error")


def test_finish_reason_can_be_scripted() -> None:
    script = parse_scripts("[{steps: [{text: a}, {finish_reason: length}]}]")
    assert play(script, build_request("x")).finish_reason == "length"
