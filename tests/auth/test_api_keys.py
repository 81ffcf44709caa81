"""Keys: what is kept of them proves them and gives nothing away."""

import re

import pytest

from limelight.auth.api_keys import make_key, read_key


def test_a_key_opens_with_its_secret_and_with_no_other() -> None:
    kept, text = make_key("ann", ("use",), 1)
    written = read_key(text)
    assert written is not None
    assert written.key_id == kept.key_id
    assert kept.opens_with(written.secret)
    other = read_key(make_key("ann", ("use",), 1)[1])
    assert other is not None
    assert not kept.opens_with(other.secret)


def test_what_is_kept_does_not_hold_the_secret() -> None:
    kept, text = make_key("ann", ("use",), 1)
    assert text.rpartition("_")[2] not in repr(kept)


def test_a_key_is_one_word_that_can_be_copied() -> None:
    _, text = make_key("ann", ("use",), 1)
    assert re.fullmatch(r"lml_[a-z0-9]+_[a-z0-9]{40,}", text)


@pytest.mark.parametrize("text", ["", "lml", "lml__", "lml_x_y", "Bearer lml_abcdefgh_" + "a" * 52, "é" * 64])
def test_whatever_else_somebody_sends_is_no_key(text: str) -> None:
    assert read_key(text) is None
