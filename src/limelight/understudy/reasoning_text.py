"""What the understudy thinks before it calls tools: a sentence or two about what it does next, and why.

Pure. The improviser says it as reasoning, or as the thought of an agent that acts by code.
"""

from collections.abc import Sequence
from typing import Any, cast

from limelight.understudy.conversation import Tool
from limelight.understudy.sentences import cut
from limelight.understudy.situation import ANOTHER_SIDE, MEMBER_FIELDS, TASK_FIELDS, Scene
from limelight.understudy.tool_kinds import PATHS, QUERIES, Kind, kind_of
from limelight.understudy.topic import finding_out, listed, topic_of, upper
from limelight.understudy.trigger_phrases import NOWHERE

Calls = Sequence[tuple[str, dict[str, Any]]]


def thought_about(scene: Scene, calls: Calls) -> str:
    """Why these calls are made now."""
    tools = {tool.name: tool for tool in scene.tools}
    made: list[tuple[Kind, str, dict[str, Any]]] = [
        (kind_of(tools.get(name, Tool(name))), name, args) for name, args in calls
    ]
    kinds: list[Kind] = [kind for kind, _, _ in made]
    if NOWHERE in str([args for _, args in calls]) or any("no_such_argument" in args for _, args in calls):
        return f"I was asked for an error, so I call `{made[0][1]}` with something that cannot work."
    if kinds.count("delegate") > 1:
        return _two_helpers([args for kind, _, args in made if kind == "delegate"])
    if kinds == ["plan"]:
        return _planning(scene)
    doing = listed([_doing(kind, name, args) for kind, name, args in made])
    if scene.made or scene.request.results:
        return _going_on(scene, kinds, doing)
    if "list" in kinds and len(kinds) > 1:
        return f"{_wanted(scene)}I should {doing}, both at once."
    return f"{_wanted(scene)}{upper(f'first I {doing}.')}" if "list" in kinds else f"{_wanted(scene)}I {doing}."


def answering(scene: Scene) -> str:
    """Before the answer of an agent that thinks aloud."""
    if any(result.lost for result in scene.request.results):
        return "That did not work, so I say what happened."
    return "I have what I need and put the answer together." if scene.request.results else "I can answer this at once."


def _wanted(scene: Scene) -> str:
    return f"I want to {finding_out(scene.topic)}. " if scene.words else ""


def _planning(scene: Scene) -> str:
    if scene.made:
        return "All of the plan is done. I tick it off, and then I answer."
    if scene.words:
        return f"I want to {finding_out(scene.topic)}. I write down a short plan, then look at what there is."
    return "I write down a short plan, then look at what there is."


def _going_on(scene: Scene, kinds: Sequence[Kind], doing: str) -> str:
    if kinds == ["read"]:
        return f"That looks like the right place: I {doing}."
    if kinds == ["delegate"]:
        return f"Somebody who looks further may find more, so I {doing}."
    if kinds == ["code"]:
        return f"Now I {doing}."
    last = scene.request.results[-1].text if scene.request.results else ""
    return f"Nothing came of that, so I {doing}." if not last.strip("[] \n") else f"Next I {doing}."


def _doing(kind: Kind, name: str, args: dict[str, Any]) -> str:
    place = cut(str(next((args[field] for field in ("url", *PATHS) if args.get(field)), "")), 80)
    match kind:
        case "plan":
            return "write down a plan"
        case "list":
            return "look at which files there are"
        case "search":
            query = next((args[field] for field in QUERIES if args.get(field)), "")
            words = " ".join(map(str, cast("list[Any]", query))) if isinstance(query, list) else str(query)
            return f"search for “{cut(words, 80)}”"
        case "calculate":
            return "do the sum with " + f"`{name}`"
        case "read":
            return f"read {place}" if place else f"read with `{name}`"
        case "delegate":
            who = next((str(args[field]) for field in MEMBER_FIELDS if args.get(field)), name)
            return f"ask the {who} for a report"
        case "code":
            return "let a few lines of Python have a look at it"
        case "write":
            return f"call `{name}` for {place}" if place else f"call `{name}`"
        case "wait":
            return f"call `{name}`, which takes its time"
        case _:
            return f"try `{name}`"


def _two_helpers(tasks: Sequence[dict[str, Any]]) -> str:
    texts = [next((str(task[field]) for field in TASK_FIELDS if task.get(field)), "") for task in tasks]
    first, second = (topic_of(text) for text in texts[:2])
    if ANOTHER_SIDE in texts[1] or not first:
        return "I ask two helpers at once: one looks into it, the other from another side."
    return f"I ask two helpers at once: one looks into {first}, the other into {second}."
