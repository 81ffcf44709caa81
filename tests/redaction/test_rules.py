"""What is hidden, in texts and in values."""

import json
import re

import pytest

from limelight.auth.api_keys import make_key
from limelight.redaction.rules import HIDDEN, Hiding, restored, secrets_in

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


def test_fields_whose_names_are_hidden_come_back_too() -> None:
    original = {TOKEN: 1, "sum": {TOKEN: 2}}
    hiding = Hiding(secrets=[TOKEN])
    assert restored({HIDDEN: 1, "sum": {HIDDEN: 3}}, original, hiding) == {TOKEN: 1, "sum": {TOKEN: 3}}
    assert restored({TOKEN: 4, "new": HIDDEN}, original, hiding) == {TOKEN: 4, "new": HIDDEN}


def test_secrets_that_overlap_are_hidden_as_one() -> None:
    hiding = Hiding([re.compile(r"Bearer \S+")], secrets=[TOKEN, "s3cr3t-s3cr3t"])
    assert hiding.text(f"s3cr3t-s3cr3{TOKEN}!") == f"{HIDDEN}!"
    assert hiding.text(f"Bearer {TOKEN}x y") == f"{HIDDEN} y"
    assert hiding.text(TOKEN + TOKEN) == HIDDEN + HIDDEN


def test_secrets_are_found_by_the_names_of_variables() -> None:
    environ = {"OPENAI_API_KEY": "a", "GITHUB_TOKEN": "b", "db_password": "c", "PATH": "/bin", "KEYBOARD": "de"}
    assert secrets_in(environ) == ["a", "b", "c"]


def test_headers_for_a_collector_are_secrets_too() -> None:
    environ = {"OTEL_EXPORTER_OTLP_HEADERS": "authorization=Bearer%20abc==, x-team=bees", "OTEL_SERVICE_NAME": "x"}
    assert secrets_in(environ) == ["Bearer%20abc==", "bees", "Bearer abc=="]
