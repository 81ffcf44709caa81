"""API keys: the format of a key, and the check against its stored hash."""

import re

import pytest

from limelight.auth.api_keys import make_key, parse_key


def test_stored_key_accepts_only_its_own_secret() -> None:
    key, text = make_key("ann", ("use",), 1)
    parsed = parse_key(text)
    assert parsed is not None
    assert parsed.key_id == key.key_id
    assert key.accepts(parsed.secret)
    other = parse_key(make_key("ann", ("use",), 1)[1])
    assert other is not None
    assert not key.accepts(other.secret)


@pytest.mark.requirement("key-hashes")
def test_stored_key_does_not_contain_the_secret() -> None:
    key, text = make_key("ann", ("use",), 1)
    assert text.rpartition("_")[2] not in repr(key)


def test_key_text_is_one_word() -> None:
    _, text = make_key("ann", ("use",), 1)
    assert re.fullmatch(r"lml_[a-z0-9]+_[a-z0-9]{40,}", text)


@pytest.mark.parametrize("text", ["", "lml", "lml__", "lml_x_y", "Bearer lml_abcdefgh_" + "a" * 52, "é" * 64])
def test_parse_key_returns_none_for_other_texts(text: str) -> None:
    assert parse_key(text) is None
