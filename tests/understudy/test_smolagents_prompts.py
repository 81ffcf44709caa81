"""Code agents of smolagents: replies are code blocks that run and call the functions of the prompt."""

import json
import re
from typing import Any

import pytest

from limelight.understudy.improviser import improvise
from tests.understudy.request_builders import build_request, read_reply, user

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


def run_steps(prompt: str, task: str, opened: str, closed: str) -> list[str]:
    """The code of each step but the last, and the final answer; the code is executed."""
    messages: list[Any] = [{"role": "system", "content": prompt}, user(f"New task:\n{task}")]
    codes: list[str] = []
    answers: list[str] = []
    while not answers:
        text = read_reply(improvise(build_request(*messages))).text
        block = re.search(rf"{re.escape(opened)}\n(.*)\n{re.escape(closed)}$", text, re.DOTALL)
        assert text.startswith("Thought: ")
        assert block is not None, text
        codes.append(block[1])
        output = execute(block[1], answers)
        messages += [{"role": "assistant", "content": text}, user(f"Observation:\n{output}")]
        assert len(codes) < 8
    return [*codes[:-1], answers[0]]


def execute(code: str, answers: list[str]) -> str:
    """The output of the code, which can call the functions of the prompt."""
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


def test_functions_of_the_prompt_are_called() -> None:
    *codes, answer = run_steps(PROMPT, "bees dance", "<code>", "</code>")
    assert codes[0] == "result = web_search(query='bees dance')\nprint(result)"
    assert codes[1].startswith("result = helper(task='Find out: bees dance. ")
    assert "words = ['bees', 'dance']\n" in codes[2]
    assert "found bees dance" in answer


@pytest.mark.parametrize(
    ("task", "part"),
    [
        ("bees dance", "2 of 2 words in the question: bees, dance"),
        ("add 2 and 3", "The program printed: 2 + 3 = 5"),
        ("What is 12 * 7 - 4?", "12 * 7 - 4 = 80"),
        ("try an error", "failed: division by zero."),
    ],
)
def test_without_functions_a_program_is_run(task: str, part: str) -> None:
    code, answer = run_steps(BARE, task, "```python", "```")
    assert code
    assert part in answer


def test_long_answer_is_given_without_a_program() -> None:
    (answer,) = run_steps(BARE, "a long answer about bees", "```python", "```")
    assert len(answer.split()) > 1900


def test_response_format_gets_thought_and_code_as_json() -> None:
    wanted = {"type": "json_schema", "json_schema": {"name": "x", "schema": {"type": "object"}}}
    messages = ({"role": "system", "content": PROMPT}, user("New task:\nbees"))
    reply = read_reply(improvise(build_request(*messages, response_format=wanted)))
    assert set(json.loads(reply.text)) == {"thought", "code"}


def test_phrases_that_code_cannot_serve_are_named_at_once() -> None:
    (answer,) = run_steps(BARE, "an approval and two helpers at once", "```python", "```")
    assert "You asked for an approval and two helpers at once, but no tool on offer can do that." in answer


def test_phrases_that_code_can_serve_are_served_and_others_named() -> None:
    code, answer = run_steps(BARE, "try an error and an approval", "```python", "```")
    assert "1 / 0" in code
    assert "You asked for an approval, but no tool on offer can do that." in answer
    assert "try an error" not in answer
