"""Chooses the arguments of the offline model's tool calls: by a recipe for each kind of tool, then by the JSON schema.

Pure. A recipe is a function that returns None if the turn lacks the tool's input, such as numbers for a calculator. All
arguments fit the tool's schema.
"""

import re
from collections.abc import Callable
from typing import Any, cast

from limelight.understudy.chat_requests import Tool
from limelight.understudy.excerpts import truncate
from limelight.understudy.json_schema import example, is_valid
from limelight.understudy.tool_kinds import MEMBER_FIELDS, PATH_FIELDS, QUERY_FIELDS, TASK_FIELDS, Kind, kind_of
from limelight.understudy.tool_results import parsed_results
from limelight.understudy.turn_context import FIND_OUT, OTHER_HELPER, REPORT_REQUEST, TurnContext

Arguments = dict[str, Any]
NOTE_FILE = "understudy-note.txt"
COMMAND = "echo the understudy was here"
CONTENT_FIELDS = ("content", "text", "body", "message", "data", "contents")
EXPRESSION_FIELDS = ("expression", "expr", "formula", "calculation", "query", "input", "equation")
WORD_FIELDS = ("pattern", "regex", "keyword", "term")
PLACE_FIELDS = ("city", "location", "place", "town", "country", "region")
SECONDS_FIELDS = ("seconds", "duration", "delay", "timeout", "secs", "time")
CODE_FIELDS = ("code", "source", "script", "python_code", "program")
AGNO_MEMBER = re.compile(r"member id=\"([^\"]+)\"|^\s*-\s*(?:Member )?ID:\s*(\S+)", re.MULTILINE)
"""Matches the id of a team member in the prompt of an Agno team's leader."""
CALCULATOR_NAMES = {"calculator", "math", "mathematician", "arithmetic"}
SLEEP_CODE = "import time\ntime.sleep(3)\nprint('slept for 3 seconds')"
FAILING_CODE = "print('about to fail')\nprint(1 / 0)"
PROGRAM_COMMENT = "# a program of the understudy"
"""First line of every program that the offline model writes, by which later turns recognise the program."""
MAX_PAGES = 4


def arguments_for(tool: Tool, context: TurnContext) -> Arguments | None:
    """Return the arguments for a call of a tool; None if the turn lacks the tool's input, such as numbers to add."""
    recipe = RECIPES.get(kind_of(tool), minimal_arguments)
    return recipe(tool, context)


def forced_arguments(tool: Tool, context: TurnContext) -> Arguments:
    """Return the arguments for a call that must be made: those of `arguments_for`, or else minimal valid ones."""
    arguments = arguments_for(tool, context)
    return minimal_arguments(tool, context) if arguments is None else arguments


def minimal_arguments(tool: Tool, context: TurnContext) -> Arguments:
    """Return valid values for the required arguments of a tool. Free texts are about the user's question."""

    def text_for(name: str) -> str:
        if "url" in name or "link" in name:
            return next(iter(context.urls), "https://example.com/")
        if name in PLACE_FIELDS and context.proper_name:
            return context.proper_name
        return next(iter(context.files), NOTE_FILE) if name in PATH_FIELDS[:6] else context.subject

    return cast("Arguments", example({**tool.parameters, "type": "object"}, text_for))


def fill(tool: Tool, context: TurnContext, values: Arguments) -> Arguments:
    """Return minimal arguments for a tool, extended by those of `values` that the tool's schema accepts."""
    minimal = minimal_arguments(tool, context)
    filled = minimal | {name: value for name, value in values.items() if accepts(tool, name, value)}
    return filled if is_valid(filled, {**tool.parameters, "type": "object"}) else minimal


def accepts(tool: Tool, name: str, value: Any) -> bool:
    return name in tool.properties and is_valid(value, tool.properties[name], tool.parameters)


def _is_list(tool: Tool, name: str) -> bool:
    schema = tool.properties.get(name, {})
    return any(way.get("type") == "array" for way in (schema, *schema.get("anyOf", ())))


def _is_number(tool: Tool, name: str) -> bool:
    types = tool.properties[name].get("type", [])
    return not {"number", "integer"}.isdisjoint([types] if isinstance(types, str) else types)


def _list(tool: Tool, context: TurnContext) -> Arguments:
    folder = "/" if tool.name == "ls" or "absolute" in tool.description.lower() else "."
    return fill(tool, context, {name: folder for name in PATH_FIELDS if name in tool.required} | {"pattern": "**/*"})


def _search(tool: Tool, context: TurnContext) -> Arguments | None:
    words = context.words
    if not words:
        return None
    values: Arguments = {
        **dict.fromkeys(QUERY_FIELDS, context.subject),
        **dict.fromkeys(WORD_FIELDS, max(words, key=len)),
    }
    return fill(tool, context, values | {name: words for name in QUERY_FIELDS if _is_list(tool, name)})


def _read(tool: Tool, context: TurnContext) -> Arguments | None:
    known = context.urls if "url" in tool.properties else context.files
    if not known or not (context.words or known[0] in context.question):
        return None
    path = _path(known[0], tool, context)
    return fill(tool, context, dict.fromkeys(PATH_FIELDS, path) | {"url": known[0]})


def _path(name: str, tool: Tool, context: TurnContext) -> str:
    """Return a file name from the turn in the form that the tool expects, absolute or relative."""
    is_absolute = "absolute" in f"{tool.description} {tool.parameters}".lower()
    return f"/{name.lstrip('/')}" if is_absolute or any(file.startswith("/") for file in context.files) else name


def is_second_choice(kind: Kind, tool: Tool, context: TurnContext) -> bool:
    """Whether another tool of this kind is preferred: one with `query`, or one with `url` if URLs are known."""
    if kind == "search":
        return "query" not in tool.properties
    return kind == "read" and bool(context.urls) and "url" not in tool.properties


def _calculate(tool: Tool, context: TurnContext) -> Arguments | None:
    numbers = context.numbers
    if not numbers:
        return None
    values: Arguments = dict.fromkeys(EXPRESSION_FIELDS, context.expression.replace("×", "*").replace("^", "**"))
    for at, name in enumerate(name for name in tool.properties if _is_number(tool, name)):
        number = numbers[at % len(numbers)]
        values[name] = number if accepts(tool, name, number) else int(number)
    return fill(tool, context, values | {name: numbers for name in tool.properties if _is_list(tool, name)})


def delegate(tool: Tool, context: TurnContext, nth: int | None = None) -> Arguments:
    """Return the arguments that give a sub-agent its task; `nth` numbers the sub-agents called in one reply."""
    members = _members(tool, context)
    chosen = dict.fromkeys(MEMBER_FIELDS, members[(nth or 0) % len(members)]) if members else {}
    task = f"{_task(context, nth)} {REPORT_REQUEST}"
    return fill(tool, context, {**dict.fromkeys(TASK_FIELDS, task), **chosen})


def _task(context: TurnContext, nth: int | None) -> str:
    """Return the task text for the sub-agent with number `nth`; None means a single sub-agent, which gets the question.

    If the question is `about A and B`, the sub-agents get A and B in turn. Otherwise all get the question, and all
    but the first are asked to answer it `from another side`.
    """
    question = context.question.removeprefix("about ") or "What is there?"
    halves = re.fullmatch(r"(?:.* )?about ([^,]+?) and ([^,]+?)[.?!]?", context.question)
    if nth is not None and halves:
        question = halves[1 + nth % 2]
    side = f" {OTHER_HELPER}" if nth and not halves else ""
    return f"{FIND_OUT}{side}: {question}{'' if question.endswith(('?', '.', '!')) else '.'}"


def _members(tool: Tool, context: TurnContext) -> list[str]:
    """Return the names of the sub-agents that a tool offers, most suitable first; [] if it takes no name."""
    schema = next((tool.properties[name] for name in MEMBER_FIELDS if name in tool.properties), None)
    if schema is None:
        return []
    in_prompt = [one or other for one, other in AGNO_MEMBER.findall(context.request.system)]
    in_description = re.findall(r"^\s*-\s*[\"'`]?([\w-]+)[\"'`]?\s*:", tool.description, re.MULTILINE)

    def rank(name: str) -> int:
        """Return a sort key: calculators first if the question has numbers, general-purpose agents last."""
        if {*re.findall("[a-z]+", name.lower())} & CALCULATOR_NAMES:
            return -1 if context.numbers else 1
        return 2 if "general" in name else 0

    return sorted(schema.get("enum") or in_prompt or in_description, key=rank)


def plan_steps(context: TurnContext) -> list[str]:
    return ["Look at what there is", f"{FIND_OUT}: {context.question or 'what fits'}", "Write the answer"]


def plan(tool: Tool, context: TurnContext, *, done: bool = False) -> Arguments:
    """Return the arguments of a plan tool: three steps as todo objects, as a list of texts, or as one text."""
    steps = plan_steps(context)
    field = next((name for name in tool.properties if _is_list(tool, name)), "")
    if not field:
        return fill(tool, context, dict.fromkeys(tool.properties, "\n".join(steps)))
    definitions = {key: tool.parameters[key] for key in ("$defs", "definitions") if key in tool.parameters}
    item = example({**(tool.properties[field].get("items") or {"type": "string"}), **definitions}, lambda _: "")
    if not isinstance(item, dict):
        return fill(tool, context, {field: steps})
    states = ["completed"] * 3 if done else ["in_progress", "pending", "pending"]
    todos: list[Arguments] = []
    for step, state in zip(steps, states, strict=True):
        todo = cast("Arguments", item)
        texts = {name: step for name, value in todo.items() if isinstance(value, str)}
        todos.append(todo | texts | {name: state for name in ("status", "state") if name in todo})
    return fill(tool, context, {field: todos})


def _write(tool: Tool, context: TurnContext) -> Arguments:
    values: Arguments = dict.fromkeys((*PATH_FIELDS[:6], "name", "source"), _path(NOTE_FILE, tool, context))
    values |= dict.fromkeys(CONTENT_FIELDS, f"A note of the understudy about {context.subject}.")
    return fill(tool, context, values | {"command": COMMAND, "cmd": COMMAND})


def wait(tool: Tool, context: TurnContext) -> Arguments:
    return fill(tool, context, dict.fromkeys(SECONDS_FIELDS, 3) | {"command": "sleep 3", "code": SLEEP_CODE})


def _code(tool: Tool, context: TurnContext) -> Arguments:
    return fill(tool, context, dict.fromkeys(CODE_FIELDS, program(context)))


def program(context: TurnContext) -> str:
    """Return Python code that calculates with the question's numbers, or counts its words in the pages found so far."""
    if context.numbers:
        expression = context.expression.replace("×", "*")
        if re.search(r"\^|\*\*", expression):  # a power may be too large to calculate, so the numbers are added instead
            expression = " + ".join(map(str, context.numbers))
        return "\n".join([PROGRAM_COMMENT, f"result = {expression}", f"print('{expression} =', result)"])
    found = [passage for result in parsed_results(context) for passage in result.passages]
    pages: dict[str, str] = {}
    for page in found:
        if page.title and page.text:
            pages.setdefault(page.title, " ".join(page.text.split()))
    texts = list(pages.items())[:MAX_PAGES] or [("the question", context.question)]
    return "\n".join(
        [
            PROGRAM_COMMENT,
            f"words = {[word.lower() for word in context.words]}",
            "texts = {",
            *(f"    {truncate(title, 60)!r}: {truncate(text, 160)!r}," for title, text in texts),
            "}",
            "for title, text in texts.items():",
            "    found = [word for word in words if word in f'{title} {text}'.lower()]",
            "    print(f'{len(found)} of {len(words)} words in {title}:', ', '.join(found))",
        ]
    )


RECIPES: dict[Kind, Callable[[Tool, TurnContext], Arguments | None]] = {
    "list": _list,
    "search": _search,
    "read": _read,
    "calculate": _calculate,
    "delegate": delegate,
    "plan": plan,
    "write": _write,
    "wait": wait,
    "code": _code,
}
