"""Which turn is played follows from the request alone."""

from typing import Any

import pytest

from limelight.understudy.reply import CallPiece, CutPiece, FaultPiece, TextPiece, Tokens
from limelight.understudy.script_player import play
from limelight.understudy.scripts import parse_scripts
from tests.understudy.requests import read, request_of, user

SAID: dict[str, Any] = {"role": "assistant", "content": "x"}
RESULT: dict[str, Any] = {"role": "tool", "tool_call_id": "c", "content": "y"}
THREE = parse_scripts("[{steps: [{text: one}]}, {steps: [{text: two}]}, {steps: [{text: three}]}]")
MATCHING = parse_scripts(
    "[{match: Rain, turns: [{steps: [{text: wet}]}, {steps: [{text: wetter}]}]},"
    " {match: sun, turns: [{steps: [{text: dry}]}]}]"
)
TASK = user("New task:\nDo it")


@pytest.mark.parametrize(
    ("messages", "text"),
    [
        (["a"], "one"),
        ([{"role": "system", "content": "s"}, "a"], "one"),
        (["a", SAID, RESULT, RESULT], "two"),
        (["a", SAID, "b", SAID], "three"),
        (["a", SAID, SAID, SAID], "The script has ended: it has 3 turns, and this would be turn 4."),
        # smolagents writes results into user messages, and leaves a reply out that it could not read
        ([TASK, SAID, user("Observation:\nfine")], "two"),
        ([user("New task:\nDo it\nError:\nbad JSON\nNow let's retry")], "two"),
        ([TASK, SAID, user("Observation:\nfine\nCall id: 1\nError:\nno")], "two"),
        ([TASK, SAID, user("Now proceed and carry out this plan.")], "two"),
    ],
)
def test_the_number_of_replies_chooses_the_turn(messages: list[Any], text: str) -> None:
    assert read(play(THREE, request_of(*messages))).text == text


@pytest.mark.parametrize(
    ("messages", "text"),
    [
        (["will it RAIN?"], "wet"),
        (["will it rain?", SAID, RESULT], "wetter"),
        (["will it rain?", SAID, "or will the sun shine?"], "dry"),
        (["snow?"], "The understudy has no script for this message; it has some for: 'Rain', 'sun'."),
    ],
)
def test_the_last_message_chooses_the_script(messages: list[Any], text: str) -> None:
    assert read(play(MATCHING, request_of(*messages))).text == text


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
    reply = play(parse_scripts(text), request_of("a"))
    said = read(reply)
    assert (said.text, said.reasoning) == ("Two words ", "Well now.")
    assert said.calls == [("a", '{"long": "enough for fragments é"}'), ("b", "{"), ("c", "{}"), ("d", "{}")]
    assert [piece.text for piece in reply.pieces if isinstance(piece, TextPiece)] == ["Two", " words", " "]
    assert {piece.delay for piece in reply.pieces} == {0, 0.25}
    ids = [piece.call_id for piece in reply.pieces if isinstance(piece, CallPiece) and piece.name]
    assert len(set(ids)) == 4
    assert ids[2] == "own"
    assert sum(isinstance(piece, CallPiece) and piece.index == 0 for piece in reply.pieces) > 2
    assert reply.usage == Tokens(3, 4)
    assert reply.ends_with == "tool_calls"


def test_faults_become_pieces() -> None:
    script = parse_scripts("[{steps: [{text: a}, {cut: true}]}, {steps: [{error: {status: 500, message: m}}]}]")
    assert play(script, request_of("x")).pieces[-1] == CutPiece()
    failing = play(script, request_of("x", SAID))
    assert failing.fault == FaultPiece(status=500, message="m", type="understudy_error")


def test_why_it_ended_can_be_said() -> None:
    script = parse_scripts("[{steps: [{text: a}, {finish_reason: length}]}]")
    assert play(script, request_of("x")).ends_with == "length"
