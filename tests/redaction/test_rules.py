"""Redaction rules: secrets, patterns and fields in texts and values, and secrets of the environment."""

import json
import re

import pytest

from limelight.auth.api_keys import make_key
from limelight.redaction.rules import REDACTED, Redactor, environment_secrets, restore_redacted, url_secrets

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


@pytest.mark.parametrize(
    "name", ["GITHUB_PAT", "azure_devops_pat", "PGPASSWORD", "MYSQL_PWD", "DB_PASSWD", "DEPLOY_PRIVATE_KEY"]
)
def test_value_of_a_variable_with_the_name_of_a_secret_is_redacted(name: str) -> None:
    redactor = Redactor(secrets=environment_secrets({name: TOKEN}))
    assert redactor.redact_text(f"{name}={TOKEN}\nHOME=/root") == f"{name}={REDACTED}\nHOME=/root"


@pytest.mark.parametrize(
    "name", ["PATH", "PYTHONPATH", "LOG_PATH", "URL_PATTERN", "COMPAT", "PG_COMPAT_MODE", "SPAT", "PWD", "OLDPWD"]
)
def test_value_of_a_variable_whose_name_only_resembles_a_secret_is_kept(name: str) -> None:
    assert environment_secrets({name: TOKEN}) == []


URL = "postgres://user:secret@db.local:5432/shop?sslmode=require"


@pytest.mark.parametrize(
    ("text", "redacted"),
    [
        (f"DATABASE_URL={URL}", f"DATABASE_URL={REDACTED}/shop?sslmode=require"),
        (
            f'could not connect to "{URL}": timed out',
            f'could not connect to "{REDACTED}/shop?sslmode=require": timed out',
        ),
        ("postgresql+asyncpg://user:secret@db.local:5432", f"postgresql+asyncpg://{REDACTED}"),
        ("the secret of the user is safe", "the secret of the user is safe"),
        ("postgres://user@db.local:5432/shop", "postgres://user@db.local:5432/shop"),
        ("mail user@db.local or see http://db.local:5432/", "mail user@db.local or see http://db.local:5432/"),
    ],
)
def test_short_password_in_a_url_is_redacted_with_its_url_only(text: str, redacted: str) -> None:
    assert Redactor(secrets=environment_secrets({"DATABASE_URL": URL})).redact_text(text) == redacted


def test_long_password_in_a_url_is_redacted_everywhere() -> None:
    """In the URL it is percent-encoded, and may contain an `@`."""
    environ = {"BROKERS": "amqp://guest@one amqps://bee:p%40ssw0rd-of-bees@two/x, redis://:sh@rt-passw0rd@three"}
    redactor = Redactor(secrets=environment_secrets(environ))
    for password in ("p%40ssw0rd-of-bees", "p@ssw0rd-of-bees", "sh@rt-passw0rd"):
        assert redactor.redact_text(f"password: {password}.") == f"password: {REDACTED}."
    assert redactor.redact_text(environ["BROKERS"]) == f"amqp://guest@one {REDACTED}/x, {REDACTED}"


@pytest.mark.parametrize(
    "value",
    [
        "http://127.0.0.1:8000/v1",
        "https://host/a:b@c",
        "git@host.example:owner/name.git",
        "ssh://git@host/x",
        "a://b:@c",
        "://x:y@z",
        "mailto:ann:x@y",
        "https://host?user:pass@x",
    ],
)
def test_url_without_a_password_has_no_secrets(value: str) -> None:
    assert list(url_secrets(value)) == []


def test_header_values_of_a_collector_are_secrets() -> None:
    environ = {"OTEL_EXPORTER_OTLP_HEADERS": "authorization=Bearer%20abc==, x-team=bees", "OTEL_SERVICE_NAME": "x"}
    assert environment_secrets(environ) == ["Bearer%20abc==", "bees", "Bearer abc=="]
