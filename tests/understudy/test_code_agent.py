"""Agents that act by code: the reply is a code block, its calls fit the functions in the prompt, and it runs."""

import json
import re
from typing import Any

import pytest

from limelight.understudy.improviser import improvise
from tests.understudy.requests import read, request_of, user

PROMPT = """You solve tasks by code, in a cycle of 'Thought:', Code and 'Observation:'.
Code is opened with '<code>' and closed with '</code>'. Call final_answer at the end.
```python
def web_search(query: string) -> string:
    \"\"\"Searches.\"\"\"

def helper(task: str, additional_args: dict[str, Any]) -> str:
    \"\"\"Helps.\"\"\"

def final_answer(answer: any) -> any:
    \"\"\"The end.\"\"\"
```"""
BARE = "Thought: then code in ```py blocks; end with final_answer."


def steps(prompt: str, task: str, opened: str, closed: str) -> list[str]:
    """The code of each step; tools and prints are real, so what is observed is what the code does."""
    messages: list[Any] = [{"role": "system", "content": prompt}, user(f"New task:\n{task}")]
    ran: list[str] = []
    answers: list[str] = []
    while not answers:
        text = read(improvise(request_of(*messages))).text
        block = re.search(rf"{re.escape(opened)}\n(.*)\n{re.escape(closed)}$", text, re.DOTALL)
        assert text.startswith("Thought: ")
        assert block is not None, text
        ran.append(block[1])
        seen = run(block[1], answers)
        messages += [{"role": "assistant", "content": text}, user(f"Observation:\n{seen}")]
        assert len(ran) < 8
    return [*ran[:-1], answers[0]]


def run(code: str, answers: list[str]) -> str:
    """What the code printed, with the functions of the prompt at hand."""
    printed: list[str] = []

    def print_(*words: object) -> None:
        printed.append(" ".join(map(str, words)))

    def web_search(query: str) -> str:
        return f"found {query}"

    def helper(task: str) -> str:
        return f"helped with {task}"

    names = {"print": print_, "web_search": web_search, "helper": helper, "final_answer": answers.append}
    try:
        exec(code, dict[str, Any](names))
    except ZeroDivisionError as error:
        printed.append(f"Error: {error}")
    return "\n".join(printed)


def test_the_functions_of_the_prompt_are_called() -> None:
    *ran, answer = steps(PROMPT, "bees dance", "<code>", "</code>")
    assert ran[0] == "result = web_search(query='bees dance')\nprint(result)"
    assert ran[1].startswith("result = helper(task='Look into bees dance. ")
    assert ran[2].startswith("wanted = ['bees', 'dance']\n")
    assert "found bees dance" in answer


@pytest.mark.parametrize(
    ("task", "part"),
    [
        ("bees dance", "- 2 of 2 words in the question: bees, dance"),
        ("add 2 and 3", "The sum of 2 and 3 is 5. Their mean is 2.5, the smallest is 2, the largest 3."),
        ("What is 12 * 7 - 4?", "12 × 7 - 4 = 80."),
        ("try an error", "failed: division by zero."),
    ],
)
def test_without_functions_plain_python_is_run(task: str, part: str) -> None:
    ran, answer = steps(BARE, task, "```python", "```")
    assert ran
    assert part in answer


def test_a_long_answer_is_final_at_once() -> None:
    (answer,) = steps(BARE, "a long answer about bees", "```python", "```")
    assert len(answer.split()) > 1900


def test_thought_and_code_as_json() -> None:
    wanted = {"type": "json_schema", "json_schema": {"name": "x", "schema": {"type": "object"}}}
    messages = ({"role": "system", "content": PROMPT}, user("New task:\nbees"))
    said = read(improvise(request_of(*messages, response_format=wanted)))
    assert set(json.loads(said.text)) == {"thought", "code"}


def test_what_code_cannot_do_is_said_at_once() -> None:
    (answer,) = steps(BARE, "an approval and two helpers at once", "```python", "```")
    assert "You asked for an approval and two helpers at once, but no tool on offer can do that." in answer


def test_what_code_can_do_is_done_and_the_rest_said() -> None:
    code, answer = steps(BARE, "try an error and an approval", "```python", "```")
    assert "1 / 0" in code
    assert "You asked for an approval, but no tool on offer can do that." in answer
    assert "try an error" not in answer
