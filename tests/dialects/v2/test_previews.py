"""Previews: texts are never cut inside of a grapheme."""

import pytest

from limelight.dialects.v2.previews import preview
from limelight.events import (
    ToolStarted,
)
from tests.dialects.v2.messages import messages_after_input, single, text_events


@pytest.mark.parametrize(
    "character",
    [
        "e\u0301",
        "👩‍🔬",
        "👍🏽",
        "🇩🇪",
        "1\ufe0f\u20e3",
        "कि",
        "क्ष",
        "ที่",
        "กำ",
        "بَّ",
        "\u1100\u1161\u11a8",
        "🏴\U000e0067\U000e0062\U000e0065\U000e006e\U000e0067\U000e007f",
        "\r\n",
    ],
)
@pytest.mark.parametrize("before", ["x", "🇫🇷"])
def test_preview_does_not_split_a_grapheme(character: str, before: str) -> None:
    """Wherever the limit is in a grapheme, the preview contains all of it or nothing."""
    for inside in range(1, len(character)):
        head = "x" * (60 - inside - len(before)) + before
        assert preview(head + character + " and more") == head + "..."
    head = "x" * (60 - len(character))
    assert preview(head + character + " and more") == head + character + "..."


def test_grapheme_longer_than_the_preview_is_split() -> None:
    assert preview("a" + "\u0301" * 100) == "a" + "\u0301" * 59 + "..."


@pytest.mark.parametrize("text", ["x" * 59 + "e\u0301y", "x" * 58 + "👩‍🔬 done", "x" * 59 + "👍🏽!"])
def test_preview_of_a_thought_does_not_split_a_grapheme(text: str) -> None:
    found = messages_after_input(*text_events(text), ToolStarted(call_id="c", name="t", args={}))
    shown = single(found, "action_thought")["metadata"]["thoughts_content"]
    assert shown.endswith("...")
    assert text.startswith(shown.removesuffix("..."))
    assert len(shown) <= 63
    following = text[len(shown) - 3]
    assert following not in "\u0301\u200d🏽"
