"""The phrases by which a user provokes something: an error, a slow tool, an approval, two helpers at once.

Pure. The improviser asks here first; a phrase that no tool on offer can serve is said to be so in the answer.
"""

import re
from collections.abc import Callable, Iterable

from limelight.understudy.conversation import Tool
from limelight.understudy.situation import Scene
from limelight.understudy.tool_arguments import TEXTS, Args, arguments, delegation, filled, nap, plain, wait
from limelight.understudy.tool_kinds import PATHS, kind_of

NOWHERE = "/no/such/file.txt"
Wanted = list[tuple[str, Args]]


def provoked_calls(scene: Scene) -> Wanted | None:
    """The calls that the phrases ask for; None if there is no such phrase."""
    asked = [make for phrase, make in PROVOCATIONS.items() if scene.provoked(phrase)]
    if not asked:
        return None
    return [call for make in asked for call in make(scene)]


def unmet(scene: Scene, met: Iterable[str] = ()) -> list[str]:
    """The phrases that no tool on offer can serve, apart from those that are met in another way."""
    return [
        phrase
        for phrase, make in PROVOCATIONS.items()
        if scene.provoked(phrase) and phrase not in met and not make(scene)
    ]


def _error(scene: Scene) -> Wanted:
    """A file that is not there, a division by zero, code that fails; or else arguments that do not fit."""
    tools = [tool for tool in scene.tools if kind_of(tool) not in ("final", "delegate", "plan", "write")]
    for tool in tools:
        if "url" not in tool.properties and kind_of(tool) == "read":
            return [(tool.name, {**plain(tool, scene), **dict.fromkeys(_texts(tool)[:1], NOWHERE)})]
    for tool in tools:
        if kind_of(tool) == "code":
            return [(tool.name, filled(tool, scene, code="print('about to fail')\nprint(1 / 0)"))]
        if "divide" in tool.name:
            return [(tool.name, filled(tool, scene, **dict.fromkeys(tool.properties, 0)))]
    for tool in (*tools, *scene.tools):
        if tool.parameters.get("required") and kind_of(tool) != "final":
            return [(tool.name, {"no_such_argument": True})]
    return []


def _slow(scene: Scene) -> Wanted:
    told = re.compile(r"\b(slow|slowly|sleeps?|waits?|takes (?:a while|long|time|seconds)|pauses?)\b", re.IGNORECASE)
    by_kind = [tool for tool in scene.tools if kind_of(tool) == "wait"]
    by_words = [tool for tool in scene.tools if told.search(tool.description) and kind_of(tool) != "final"]
    for tool in (*by_kind, *by_words):
        return [(tool.name, wait(tool, scene))]
    for tool in scene.tools:
        if kind_of(tool) == "code":
            return [(tool.name, filled(tool, scene, code=nap()))]
        if "command" in tool.properties:
            return [(tool.name, wait(tool, scene))]
    return []


def _approval(scene: Scene) -> Wanted:
    """A tool that says it needs one; otherwise one that writes, executes or deletes, in this order.

    What is to be deleted is a note of our own, which is written first.
    """
    for tool in (*asking(scene), *_changing(scene), *(tool for tool in scene.tools if kind_of(tool) == "code")):
        call = (tool.name, arguments(kind_of(tool), tool, scene) or plain(tool, scene))
        writing = next(iter(_writing(scene)), None) if re.search("delete|remove", tool.name.lower()) else None
        if writing is None or writing is tool:
            return [call]
        if scene.calls_of(writing):
            return [(writing.name, scene.made_with(writing)), call]
        return [(writing.name, arguments("write", writing, scene) or plain(writing, scene))]
    return []


def asking(scene: Scene) -> list[Tool]:
    """The tools that ask for an approval, by their own words or by those of the agent's instructions."""
    told = re.compile(r"approv|confirm|permission|dangerous", re.IGNORECASE)
    rules = [said for said in re.split(r"(?<=[.!?])\s|\n", scene.request.system) if re.search("approv", said, re.I)]

    def asks(tool: Tool) -> bool:
        named = any(re.search(rf"\b{re.escape(tool.name)}\b", rule) for rule in rules)
        return bool(told.search(tool.description)) or (named and kind_of(tool) == "write")

    return [tool for tool in scene.tools if kind_of(tool) != "final" and asks(tool)]


def _changing(scene: Scene) -> list[Tool]:
    ranks = ("write", "create", "save", "send", "exec", "shell", "run", "delete", "remove", "edit")

    def rank(tool: Tool) -> int:
        return next((at for at, word in enumerate(ranks) if word in tool.name.lower()), len(ranks))

    return sorted((tool for tool in scene.tools if kind_of(tool) == "write"), key=rank)


def _writing(scene: Scene) -> list[Tool]:
    """Tools that make a file."""
    return [tool for tool in _changing(scene) if {*tool.properties} & {*TEXTS} and {*tool.properties} & {*PATHS}]


def _two_helpers(scene: Scene) -> Wanted:
    """Two tools that are helpers, or two calls of the tool that gives tasks to helpers."""
    helpers = [tool for tool in scene.tools if kind_of(tool) == "delegate"]
    if not helpers:
        return []
    own = [tool for tool in helpers if "additional_args" in tool.properties]  # smolagents: a helper is a tool
    pair = own[:2] if len(own) > 1 else [helpers[0], helpers[0]]
    return [(tool.name, delegation(tool, scene, nth)) for nth, tool in enumerate(pair)]


def _texts(tool: Tool) -> list[str]:
    return [name for name, schema in tool.properties.items() if schema.get("type") == "string"]


PROVOCATIONS: dict[str, Callable[[Scene], Wanted]] = {
    "try an error": _error,
    "a slow tool": _slow,
    "an approval": _approval,
    "two helpers at once": _two_helpers,
}
