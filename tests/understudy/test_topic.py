"""What a message is about, as a phrase that can stand in a sentence."""

import pytest

from limelight.understudy.situation import plain_question
from limelight.understudy.topic import content_words, finding_out, halves, listed, topic_of


@pytest.mark.parametrize(
    ("asked", "topic"),
    [
        ("How do bees find their way to food?", "how bees find their way to food"),
        ("Ask two helpers at once about tides and lighthouses", "tides and lighthouses"),
        ("Write a note about kites and delete it again, with an approval", "kites"),
        ("Look up sourdough, and try an error on the way", "sourdough"),
        ("Why does sourdough rise? Write a long answer", "why sourdough rises"),
        ("Report on lighthouses, after an approval", "lighthouses"),
        ("How did clocks help sailors?", "how clocks helped sailors"),
        ("Which rivers are the longest?", "which rivers are the longest"),
        ("What do bees do in winter? And what is 12 * 7?", "what bees do in winter"),
        ("And lighthouses?", "lighthouses"),
        ("Can you tell me about the Danube?", "the Danube"),
        ("How long is the Danube?", "how long the Danube is"),
        ("When was the first lighthouse built?", "when the first lighthouse was built"),
        ("Is sourdough healthy?", "whether sourdough is healthy"),
        ("Do bees sleep?", "whether bees sleep"),
        ("How did the old Romans transport their wine?", "“How did the old Romans transport their wine?”"),
        ("What is limelight and why was it used in theatres?", "limelight"),
        ("bees dance", "bees dance"),
        ("Run a slow tool and print what it returns", ""),
        ("What is 2 + 2?", ""),
        ("go", ""),
        ("", ""),
    ],
)
def test_topics(asked: str, topic: str) -> None:
    assert topic_of(plain_question(asked)) == topic
    assert topic_of(f"Look into {topic}.") == topic, "a helper understands its task"


def test_a_long_topic_is_cut_between_words() -> None:
    topic = topic_of("about " + "very " * 40 + "long rivers")
    assert topic.endswith("very…")
    assert len(topic) <= 101


def test_what_is_to_be_found_out() -> None:
    assert finding_out("how bees dance") == "find out how bees dance"
    assert finding_out("bees") == "find out about bees"
    assert finding_out("“Did it rain?”") == "answer “Did it rain?”"


def test_halves() -> None:
    assert halves("tides and lighthouses") == ("tides", "lighthouses")
    assert halves("bees") is halves("how bees dance and eat") is halves("a and b and c") is None


def test_lists_and_words() -> None:
    assert [listed(["a", "b", "c"][:count]) for count in range(4)] == ["", "a", "a and b", "a, b and c"]
    assert content_words("how bees find their way, and bees again") == ["bees", "way", "again"]


def test_question_of_megabytes_is_cut_before_it_is_read() -> None:
    """Read whole, this one takes minutes."""
    text = "What do bees do? " + "and then run " * 300_000
    assert plain_question(text).startswith("What do bees do? and then run")
