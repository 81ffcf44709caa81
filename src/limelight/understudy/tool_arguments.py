"""With what arguments a tool is called: a recipe for each kind, and the schema for the rest.

Pure. A recipe gives None when the moment offers nothing to call the tool with: no number to add, no file to read.
Whatever a recipe wishes, the arguments fit the tool's schema. The improviser calls `arguments`.
"""

import re
from collections.abc import Callable
from typing import Any, cast

from limelight.understudy.conversation import Tool
from limelight.understudy.plans import steps_of
from limelight.understudy.programs import program
from limelight.understudy.schema_check import fits
from limelight.understudy.schema_examples import example
from limelight.understudy.situation import ANOTHER_SIDE, MEMBER_FIELDS, REPORT, TASK_FIELDS, Scene
from limelight.understudy.tool_kinds import PATHS, QUERIES, Kind
from limelight.understudy.tool_results import findings
from limelight.understudy.topic import halves

Args = dict[str, Any]
NOTE = "understudy-note.txt"
TEXTS = ("content", "text", "body", "message", "data", "contents")
MEMBERS = re.compile(r"member id=\"([^\"]+)\"|^\s*-\s*(?:Member )?ID:\s*(\S+)", re.MULTILINE)
"""How Agno tells a team's leader who is in the team."""
CALCULATORS = ("calculator", "math", "mathematician", "arithmetic")
PLACES = ("city", "location", "place", "town", "country", "region")
SECONDS = ("seconds", "duration", "delay", "timeout", "secs", "time")


def arguments(kind: Kind, tool: Tool, scene: Scene) -> Args | None:
    """The arguments of a call, or None if there is nothing to call it with now."""
    recipe = RECIPES.get(kind)
    return plain(tool, scene) if recipe is None else recipe(tool, scene)


def fitting(tool: Tool, scene: Scene, wished: Args) -> Args:
    """What was wished for, if the tool takes it."""
    return wished if fits(wished, {**tool.parameters, "type": "object"}) else plain(tool, scene)


def plain(tool: Tool, scene: Scene) -> Args:
    """Minimal arguments by the schema alone; free texts are about the question."""

    def wish(name: str) -> str:
        if "url" in name or "link" in name:
            return next(iter(scene.urls), "https://example.com/")
        if name in PLACES and (named := scene.proper_name):
            return named
        return next(iter(scene.files), NOTE) if name in PATHS[:6] else scene.subject

    return cast("Args", example({**tool.parameters, "type": "object"}, wish))


def filled(tool: Tool, scene: Scene, **values: Any) -> Args:
    """Minimal arguments, with these values in the fields that the tool has and that can take them."""
    own = {name: value for name, value in values.items() if takes(tool, name, value)}
    return fitting(tool, scene, {**plain(tool, scene), **own})


def takes(tool: Tool, name: str, value: Any) -> bool:
    return name in tool.properties and fits(value, tool.properties[name], tool.parameters)


def is_list(tool: Tool, name: str) -> bool:
    ways = [tool.properties[name], *tool.properties[name].get("anyOf", ())]
    return any(way.get("type") == "array" for way in ways)


def _list(tool: Tool, scene: Scene) -> Args:
    place = "/" if tool.name == "ls" or "absolute" in tool.description.lower() else "."
    return filled(tool, scene, **{name: place for name in PATHS if name in _required(tool)}, pattern="**/*")


def _search(tool: Tool, scene: Scene) -> Args | None:
    if not scene.words:
        return None
    values: Args = {}
    for name in (name for name in QUERIES if name in tool.properties):
        single = name in ("pattern", "regex", "keyword", "term")
        one = max(scene.words, key=len) if single else scene.subject
        values[name] = scene.words if is_list(tool, name) else one
    return filled(tool, scene, **values)


def _read(tool: Tool, scene: Scene) -> Args | None:
    by_url = "url" in tool.properties
    known = scene.urls if by_url else scene.files
    if not known or not (scene.words or scene.asks_for(known[0])):
        return None  # a bare sum is no reason to read whatever lies around
    target = known[0] if by_url else _placed(known[0], tool, scene)
    return filled(tool, scene, **{name: target for name in (*PATHS, "url") if name in tool.properties})


def second_best(kind: Kind, tool: Tool, scene: Scene) -> bool:
    """Of two tools that search, one that takes words beats one that takes a pattern; pages beat files, once found."""
    if kind == "search":
        return "query" not in tool.properties
    return kind == "read" and bool(scene.urls) and "url" not in tool.properties


def _calculate(tool: Tool, scene: Scene) -> Args | None:
    if not scene.numbers:
        return None
    written = scene.sum_.replace("×", "*").replace("^", "**") or " + ".join(map(str, scene.numbers))
    values: Args = {}
    count = 0
    for name in tool.properties:
        if is_list(tool, name):
            values[name] = scene.numbers
        elif _is_number(tool.properties[name]):
            number = scene.numbers[count % len(scene.numbers)]
            values[name] = number if takes(tool, name, number) else int(number)
            count += 1
        elif name in ("expression", "expr", "formula", "calculation", "query", "input", "equation"):
            values[name] = written
    return filled(tool, scene, **values)


def _placed(name: str, tool: Tool, scene: Scene) -> str:
    """The name of a file as the tool wants it: from the root, or not."""
    told = "absolute" in f"{tool.description} {tool.parameters}".lower()
    seen = any(file.startswith("/") for file in scene.files)
    return f"/{name.lstrip('/')}" if told or seen else name


def _is_number(schema: Args) -> bool:
    kinds = schema.get("type", [])
    return bool({"number", "integer"} & {kinds} if isinstance(kinds, str) else {"number", "integer"} & {*kinds})


def members(tool: Tool, scene: Scene) -> list[str]:
    """Who can be given a task: named in the tool's schema or description, or in the system prompt."""
    for name in MEMBER_FIELDS:
        schema = tool.properties.get(name)
        if schema is not None:
            listed = re.findall(r"^\s*-\s*[\"'`]?([\w-]+)[\"'`]?\s*:", tool.description, re.MULTILINE)
            told = MEMBERS.findall(scene.request.system)
            return sorted(schema.get("enum") or [a or b for a, b in told] or listed, key=lambda who: _unfit(who, scene))
    return []


def _unfit(who: str, scene: Scene) -> int:
    """Somebody with a trade comes before a jack of all trades; a calculator first for a sum, and else last."""
    if {*re.findall("[a-z]+", who.lower())} & {*CALCULATORS}:
        return -1 if scene.numbers else 1
    return 2 if "general" in who else 0


def delegation(tool: Tool, scene: Scene, nth: int | None = None) -> Args:
    """A task for a helper. Of two, the second gets another helper, if there is one, and another task."""
    who = members(tool, scene)
    chosen = who[(nth or 0) % len(who)] if who else None
    by_name = {name: chosen for name in MEMBER_FIELDS if chosen is not None}
    about = dict.fromkeys(TASK_FIELDS, f"{_task(scene, nth)} {REPORT}")
    known = {name: value for name, value in {**about, **by_name}.items() if name in tool.properties}
    return filled(tool, scene, **known)


def _task(scene: Scene, nth: int | None) -> str:
    """What a helper is to do. Two helpers share the halves of a topic; if it has none, they come from two sides."""
    verb = "Look into" if scene.words else "Work out"
    both = halves(scene.topic) if scene.words and nth is not None else None
    if both is not None:
        return f"{verb} {both[(nth or 0) % 2]}."
    about = scene.topic if not scene.topic.endswith("…") else scene.question
    return f"{verb} {about or 'what there is'}{f' {ANOTHER_SIDE}' if nth else ''}."


def plan(tool: Tool, scene: Scene, *, done: bool = False) -> Args:
    """A list of three steps in whatever shape the tool has for it."""
    steps = steps_of(scene)
    field = next((name for name in tool.properties if is_list(tool, name)), None)
    if field is None:
        return filled(tool, scene, **{name: "\n".join(steps) for name in tool.properties})
    item = example(_item_schema(tool, field), lambda _: "")
    if not isinstance(item, dict):
        return filled(tool, scene, **{field: steps})
    states = ["completed"] * 3 if done else ["in_progress", "pending", "pending"]
    shape = cast("Args", item)
    return filled(tool, scene, **{field: [_todo(shape, *one) for one in zip(steps, states, strict=True)]})


def _item_schema(tool: Tool, field: str) -> Any:
    items = tool.properties[field].get("items") or {"type": "string"}
    return {**items, **{key: tool.parameters[key] for key in ("$defs", "definitions") if key in tool.parameters}}


def _todo(item: Args, step: str, state: str) -> Args:
    made = dict(item)
    for name, value in item.items():
        if name in ("status", "state"):
            made[name] = state
        elif isinstance(value, str):
            made[name] = step
    return made


def _write(tool: Tool, scene: Scene) -> Args:
    place = _placed(NOTE, tool, scene)
    values: Args = {name: place for name in (*PATHS[:6], "name", "source") if name in tool.properties}
    values |= dict.fromkeys(TEXTS, f"A note of the understudy about {scene.subject}.")
    return filled(tool, scene, **values, command="echo the understudy was here", cmd="echo the understudy was here")


def wait(tool: Tool, scene: Scene, seconds: int = 3) -> Args:
    return filled(tool, scene, **dict.fromkeys(SECONDS, seconds), command=f"sleep {seconds}", code=nap(seconds))


def nap(seconds: int = 3) -> str:
    return f"import time\ntime.sleep({seconds})\nprint('slept for {seconds} seconds')"


def _code(tool: Tool, scene: Scene) -> Args:
    names = ("code", "source", "script", "python_code", "program")
    return filled(tool, scene, **dict.fromkeys(names, program(scene, pages(scene))))


def pages(scene: Scene) -> dict[str, str]:
    """What was found so far, by title."""
    found = [passage for one in findings(scene) for passage in one.passages]
    texts = [(passage.title, " ".join(passage.text.split())) for passage in found if passage.title and passage.text]
    first = dict(reversed(texts))  # of two texts with one title the first, which is what the search gave of it
    return {title: first[title] for title, _ in texts}


def _required(tool: Tool) -> list[str]:
    return tool.parameters.get("required") or []


RECIPES: dict[Kind, Callable[[Tool, Scene], Args | None]] = {
    "list": _list,
    "search": _search,
    "read": _read,
    "calculate": _calculate,
    "delegate": delegation,
    "plan": plan,
    "write": _write,
    "wait": wait,
    "code": _code,
}
