"""Redaction rules: secrets, patterns and fields in texts and values, and secrets of the environment."""

import json
import re

import pytest

from limelight.auth.api_keys import make_key
from limelight.redaction.rules import REDACTED, Redactor, environment_secrets, restore_redacted

TOKEN = "tok-123456789012"
CARD = re.compile(r"\b\d{4}-\d{4}\b")


def test_secrets_patterns_and_keys_are_redacted_in_texts() -> None:
    redactor = Redactor([CARD], secrets=[TOKEN])
    key = make_key("ann", ("use",), 1)[1]
    redacted = redactor.redact_text(f"{TOKEN} {TOKEN}, card 1234-5678, key {key}.")
    assert redacted == f"{REDACTED} {REDACTED}, card {REDACTED}, key {REDACTED}."


def test_short_values_are_not_redacted() -> None:
    assert Redactor(secrets=["", "secret"]).redact_text("no secret here") == "no secret here"


def test_secret_that_extends_another_is_redacted_completely() -> None:
    assert Redactor(secrets=[TOKEN, TOKEN + "-long"]).redact_text(f"{TOKEN}-long") == REDACTED


def test_values_and_named_fields_are_redacted() -> None:
    redactor = Redactor([CARD], ["password", "*_token"], [TOKEN])
    value = {
        "user": "ann",
        "Password": {"any": ["thing"]},
        "refresh_token": 7,
        "list": ["1234-5678", {"password": None, "n": 1, "ok": True}],
    }
    assert redactor.redact_value(value) == {
        "user": "ann",
        "Password": REDACTED,
        "refresh_token": REDACTED,
        "list": [REDACTED, {"password": REDACTED, "n": 1, "ok": True}],
    }


@pytest.mark.parametrize(
    ("text", "redacted"),
    [
        ('{"password": "x", "n": 1}', '{"password":"[redacted]","n":1}'),
        (' [{"password": "x"}] ', '[{"password":"[redacted]"}]'),
        ('{"n":  1}', '{"n":  1}'),  # nothing to redact: unchanged
        ("{password: x}", "{password: x}"),
        ("[" * 5000, "[" * 5000),
    ],
)
def test_fields_are_redacted_in_json_texts(text: str, redacted: str) -> None:
    assert Redactor(fields=["password"]).redact_value(text) == redacted


def test_field_names_and_numbers_are_redacted() -> None:
    redactor = Redactor([re.compile(r"\b4\d{15}\b")], secrets=[TOKEN])
    value = {TOKEN: "x", "card": 4111111111111111, "sum": 3.5, "ok": True, "none": None}
    assert redactor.redact_value(value) == {REDACTED: "x", "card": REDACTED, "sum": 3.5, "ok": True, "none": None}


def test_secret_is_redacted_in_its_json_escaped_form() -> None:
    secret = 'pass"word\\secret'
    assert Redactor(secrets=[secret]).redact_text(json.dumps({"p": secret})) == json.dumps({"p": REDACTED})


def test_restore_puts_back_unchanged_redacted_values() -> None:
    redactor = Redactor([CARD], ["password"])
    original = {"to": "ann", "password": "x", "pay": {"card": "1234-5678", "sum": 3}, "cards": ["1234-5678"]}
    shown = redactor.redact_value(original)
    assert restore_redacted(shown, original, redactor) == original
    assert restore_redacted({"cards": [REDACTED, "new"]}, original, redactor) == {"cards": ["1234-5678", "new"]}
    shown["to"] = "ben"
    shown["pay"]["sum"] = 4
    shown["new"] = REDACTED
    assert restore_redacted(shown, original, redactor) == {
        "to": "ben",
        "password": "x",
        "pay": {"card": "1234-5678", "sum": 4},
        "cards": ["1234-5678"],
        "new": REDACTED,
    }
    assert restore_redacted({"password": "mine"}, original, redactor) == {"password": "mine"}


def test_restore_puts_back_redacted_field_names() -> None:
    original = {TOKEN: 1, "sum": {TOKEN: 2}}
    redactor = Redactor(secrets=[TOKEN])
    assert restore_redacted({REDACTED: 1, "sum": {REDACTED: 3}}, original, redactor) == {TOKEN: 1, "sum": {TOKEN: 3}}
    assert restore_redacted({TOKEN: 4, "new": REDACTED}, original, redactor) == {TOKEN: 4, "new": REDACTED}


def test_overlapping_secrets_are_redacted_as_one() -> None:
    redactor = Redactor([re.compile(r"Bearer \S+")], secrets=[TOKEN, "s3cr3t-s3cr3t"])
    assert redactor.redact_text(f"s3cr3t-s3cr3{TOKEN}!") == f"{REDACTED}!"
    assert redactor.redact_text(f"Bearer {TOKEN}x y") == f"{REDACTED} y"
    assert redactor.redact_text(TOKEN + TOKEN) == REDACTED + REDACTED


def test_environment_secrets_are_found_by_variable_name() -> None:
    environ = {"OPENAI_API_KEY": "a", "GITHUB_TOKEN": "b", "db_password": "c", "PATH": "/bin", "KEYBOARD": "de"}
    assert environment_secrets(environ) == ["a", "b", "c"]


def test_header_values_of_a_collector_are_secrets() -> None:
    environ = {"OTEL_EXPORTER_OTLP_HEADERS": "authorization=Bearer%20abc==, x-team=bees", "OTEL_SERVICE_NAME": "x"}
    assert environment_secrets(environ) == ["Bearer%20abc==", "bees", "Bearer abc=="]
