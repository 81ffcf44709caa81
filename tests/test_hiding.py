"""What is hidden, in texts and in values."""

import itertools
import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from limelight.access.keys import make_key
from limelight.hiding import HIDDEN, Hiding, restored, secrets_in

TOKEN = "tok-123456789012"
CARD = re.compile(r"\b\d{4}-\d{4}\b")


def test_secrets_patterns_and_keys_are_hidden_in_texts() -> None:
    hiding = Hiding([CARD], secrets=[TOKEN])
    key = make_key("ann", ("use",), 1)[1]
    said = hiding.text(f"{TOKEN} {TOKEN}, card 1234-5678, key {key}.")
    assert said == f"{HIDDEN} {HIDDEN}, card {HIDDEN}, key {HIDDEN}."


def test_what_is_short_is_a_word_and_no_secret() -> None:
    assert Hiding(secrets=["", "secret"]).text("no secret here") == "no secret here"


def test_a_secret_that_begins_like_another_does_not_leave_its_end() -> None:
    assert Hiding(secrets=[TOKEN, TOKEN + "-long"]).text(f"{TOKEN}-long") == HIDDEN


def test_values_are_searched_and_fields_hidden_by_name() -> None:
    hiding = Hiding([CARD], ["password", "*_token"], [TOKEN])
    value = {
        "user": "ann",
        "Password": {"any": ["thing"]},
        "refresh_token": 7,
        "list": ["1234-5678", {"password": None, "n": 1, "ok": True}],
    }
    assert hiding.value(value) == {
        "user": "ann",
        "Password": HIDDEN,
        "refresh_token": HIDDEN,
        "list": [HIDDEN, {"password": HIDDEN, "n": 1, "ok": True}],
    }


@pytest.mark.parametrize(
    ("text", "hidden"),
    [
        ('{"password": "x", "n": 1}', '{"password":"[redacted]","n":1}'),
        (' [{"password": "x"}] ', '[{"password":"[redacted]"}]'),
        ('{"n":  1}', '{"n":  1}'),  # nothing to hide: as it was
        ("{password: x}", "{password: x}"),
        ("[" * 5000, "[" * 5000),
    ],
)
def test_json_that_is_written_as_text_has_fields_too(text: str, hidden: str) -> None:
    assert Hiding(fields=["password"]).value(text) == hidden


ALL = [TOKEN, "s3cr3t-s3cr3t", f"{TOKEN}-long", "aaaaaaaaaaaa"]
SECRETS = st.sampled_from(ALL)


@given(st.lists(SECRETS | st.text("tokens3-12a", max_size=9), max_size=6), st.lists(st.integers(0, 90), max_size=9))
def test_pieces_hide_a_secret_wherever_they_are_cut(parts: list[str], cuts: list[int]) -> None:
    hiding = Hiding(secrets=ALL)
    whole = "".join(parts)
    bounds = [0, *sorted(min(cut, len(whole)) for cut in cuts), len(whole)]
    said, held = "", ""
    for start, end in itertools.pairwise(bounds):
        held += whole[start:end]
        safe = hiding.first_open(held, 1000)
        said, held = said + hiding.piece(held[:safe]), held[safe:]
    said += hiding.piece(held)
    assert not [secret for secret in ALL if secret[3:] in said]
    if hiding.piece(whole) == whole:
        assert said == whole


def test_with_patterns_a_line_is_held_until_it_ends() -> None:
    hiding = Hiding([CARD])
    assert hiding.first_open("one\ntwo", 99) == 4
    assert hiding.first_open("50 %\r51 %", 99) == 5
    assert hiding.first_open("one", 99) == 0
    assert Hiding().first_open("one", 99) == 3


@pytest.mark.parametrize("card", ["1234-5678", "1234-56", ""])
def test_of_a_line_that_is_too_long_the_end_is_held(card: str) -> None:
    line = "x " * 3000 + card
    assert len(line) - 2000 < Hiding([CARD]).first_open(line, 4000) <= len(line) - 1024


def test_what_a_pattern_matches_is_not_cut() -> None:
    line = "x" * 5000 + "y" * 3000
    assert Hiding([re.compile("y+")]).first_open(line, 4000) == 5000


@given(st.integers(1, 64))
def test_a_key_is_hidden_wherever_it_is_cut(cut: int) -> None:
    key = make_key("ann", ("use",), 1)[1]
    hiding = Hiding()
    said, rest = f"key {key[:cut]}", f"{key[cut:]} ends"
    safe = hiding.first_open(said, 99)
    told = hiding.piece(said[:safe]) + hiding.piece(said[safe:] + rest)
    assert key[3:] not in told and told.endswith(f"{HIDDEN} ends")
    assert hiding.first_open("all is well and a_name ", 99) == 23


def test_names_and_numbers_are_looked_at_too() -> None:
    hiding = Hiding([re.compile(r"\b4\d{15}\b")], secrets=[TOKEN])
    value = {TOKEN: "x", "card": 4111111111111111, "sum": 3.5, "ok": True, "none": None}
    assert hiding.value(value) == {HIDDEN: "x", "card": HIDDEN, "sum": 3.5, "ok": True, "none": None}


def test_a_secret_is_found_as_json_writes_it() -> None:
    secret = 'pass"word\\secret'
    assert Hiding(secrets=[secret]).text(json.dumps({"p": secret})) == json.dumps({"p": HIDDEN})


def test_what_was_hidden_and_left_alone_comes_back() -> None:
    hiding = Hiding([CARD], ["password"])
    original = {"to": "ann", "password": "x", "pay": {"card": "1234-5678", "sum": 3}, "cards": ["1234-5678"]}
    shown = hiding.value(original)
    assert restored(shown, original, hiding) == original
    assert restored({"cards": [HIDDEN, "new"]}, original, hiding) == {"cards": ["1234-5678", "new"]}
    shown["to"] = "ben"
    shown["pay"]["sum"] = 4
    shown["new"] = HIDDEN
    assert restored(shown, original, hiding) == {
        "to": "ben",
        "password": "x",
        "pay": {"card": "1234-5678", "sum": 4},
        "cards": ["1234-5678"],
        "new": HIDDEN,
    }
    assert restored({"password": "mine"}, original, hiding) == {"password": "mine"}


def test_secrets_are_found_by_the_names_of_variables() -> None:
    environ = {"OPENAI_API_KEY": "a", "GITHUB_TOKEN": "b", "db_password": "c", "PATH": "/bin", "KEYBOARD": "de"}
    assert secrets_in(environ) == ["a", "b", "c"]
