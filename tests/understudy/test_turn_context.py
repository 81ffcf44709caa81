"""The question of a turn: its text, its words and its numbers."""

import pytest

from limelight.understudy.turn_context import FIND_OUT, OTHER_HELPER, REPORT_REQUEST, question_text, turn_context
from tests.understudy.request_builders import build_request


@pytest.mark.parametrize(
    ("message", "question", "words"),
    [
        ("How do bees find their way to food?", "How do bees find their way to food?", ["bees", "way", "food"]),
        (
            "Ask two helpers at once about tides and lighthouses",
            "about tides and lighthouses",
            ["tides", "lighthouses"],
        ),
        (
            "Write a note about kites and delete it again, with an approval",
            "Write a note about kites and delete it again",
            ["kites"],
        ),
        ("Look up sourdough, and try an error on the way", "Look up sourdough", ["sourdough"]),
        ("Why does sourdough rise? Write a long answer", "Why does sourdough rise?", ["sourdough", "rise"]),
        ("Can you tell me about the Danube?", "Can you tell me about the Danube?", ["Danube"]),
        ("And lighthouses?", "And lighthouses?", ["lighthouses"]),
        ("Run a slow tool and print what it returns", "and print what it returns", []),
        ("What is 2 + 2?", "What is 2 + 2?", []),
        ("go", "go", []),
        ("", "", []),
    ],
)
def test_question_has_no_trigger_phrases_and_its_words_are_not_common(
    message: str, question: str, words: list[str]
) -> None:
    context = turn_context(build_request(message))
    assert (context.question, context.words) == (question, words)


@pytest.mark.parametrize("start", [FIND_OUT, f"{FIND_OUT} {OTHER_HELPER}"])
def test_question_of_a_delegated_task_is_that_of_the_user(start: str) -> None:
    context = turn_context(build_request(f"{start}: Do bees sleep? {REPORT_REQUEST}"))
    assert context.is_delegated
    assert context.question == "Do bees sleep?"


@pytest.mark.parametrize(
    ("message", "expression"),
    [("What is 12 * 7 - 4?", "12 * 7 - 4"), ("Add 12, 19 and 2.5", "12 + 19 + 2.5"), ("How many?", "")],
)
def test_expression_is_written_in_the_question_or_the_sum_of_its_numbers(message: str, expression: str) -> None:
    assert turn_context(build_request(message)).expression == expression


def test_question_of_megabytes_is_cut_before_it_is_parsed() -> None:
    """Without the cut, the regular expression for the phrase takes minutes."""
    text = "What do bees do with an approval? " + "and then run " * 300_000
    assert question_text(text).startswith("What do bees do? and then run")
