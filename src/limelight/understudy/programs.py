"""The little programs of the understudy: code that does something about the question, and prints it.

Pure: it writes code and never runs any. Each program stands alone, as not every interpreter keeps its names from one
piece of code to the next. Recipes, the agents that act by code and the answer use it.
"""

import ast
from typing import Any

from limelight.understudy.conversation import Tool
from limelight.understudy.sentences import cut
from limelight.understudy.situation import Scene

MARKS = ("numbers = [", "wanted = [")
"""How our programs are known again in a conversation."""
MOST_PAGES = 4


def is_program(code: str) -> bool:
    return any(mark in code for mark in MARKS)


def program(scene: Scene, pages: dict[str, str] | None = None) -> str:
    """About the numbers of the question; or else, how much the pages that were found have to do with its words."""
    if scene.numbers:
        return _about_numbers(scene)
    wanted = [word.lower() for word in scene.words] or ["limelight"]
    texts = {cut(title, 60): cut(text, 160) for title, text in list((pages or {}).items())[:MOST_PAGES]}
    if not texts:
        texts = {"the question": scene.question}
    entries = "".join(f"    {title!r}: {text!r},\n" for title, text in texts.items())
    return (
        f"wanted = {wanted}\n"
        f"texts = {{\n{entries}}}\n"
        "for title, text in texts.items():\n"
        "    found = [word for word in wanted if word in f'{title} {text}'.lower()]\n"
        "    print(f'{len(found)} of {len(wanted)} words in {title}:', ', '.join(found))"
    )


def _about_numbers(scene: Scene) -> str:
    lines = [f"numbers = {scene.numbers}"]
    if sum_ := runnable(scene.sum_):
        lines += [f"result = {sum_}", f"print('result: {scene.sum_} =', result)"]
    return "\n".join(
        [
            *lines,
            "print('numbers:', numbers)",
            "print('sorted:', sorted(numbers))",
            *(() if sum_ else ("print('sum:', sum(numbers))", "print('mean:', sum(numbers) / len(numbers))")),
            "print('smallest:', min(numbers))",
            "print('largest:', max(numbers))",
        ]
    )


def runnable(written: str) -> str:
    """Arithmetic that Python can read and that comes to an end; no powers, which may be larger than any machine."""
    code = written.replace("×", "*")
    try:
        ast.parse(code, mode="eval")
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return ""
    return "" if "^" in code or "**" in code or "/" in code else code


def call(tool: Tool, name: str, args: dict[str, Any]) -> str:
    """A call in Python whose result is printed as its type allows."""
    written = f"{name}({', '.join(f'{key}={value!r}' for key, value in args.items())})"
    if tool.returns in ("array", "list"):
        return (
            f"results = {written}\n"
            "print('found:', len(results))\n"
            "for result in results:\n"
            "    print()\n"
            "    if isinstance(result, dict):\n"
            "        print('\\n'.join([str(value) for value in result.values()]))\n"
            "    else:\n"
            "        print(result)"
        )
    return f"result = {written}\nprint(result)"
