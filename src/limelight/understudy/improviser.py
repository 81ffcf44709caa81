"""Without a script: calls the tools on offer in a sensible order, then answers with what they returned.

Pure and deterministic: everything follows from the request, no clock and no chance. The server calls `improvise`.
"""

import json
from collections.abc import Iterable, Iterator
from typing import Any

from limelight.understudy.answer_text import NOTICE, answer
from limelight.understudy.code_agent import code_block, code_scene, expects_code, has_run_program, written
from limelight.understudy.conversation import Request, Tool
from limelight.understudy.plans import plan_text, wants_plan
from limelight.understudy.programs import program
from limelight.understudy.reasoning_text import answering, thought_about
from limelight.understudy.reply import AnyPiece, Reply, called, spoken, thought
from limelight.understudy.schema_examples import example
from limelight.understudy.side_tasks import chore
from limelight.understudy.situation import Scene, scene_of
from limelight.understudy.tool_arguments import Args, arguments, filled, nap, pages, plain, plan, second_best
from limelight.understudy.tool_kinds import Kind, kind_of
from limelight.understudy.topic import listed
from limelight.understudy.trigger_phrases import provoked_calls, unmet

MOST_CALLS = 6
"""So many calls for one message of the user."""

STAGES: tuple[tuple[Kind, ...], ...] = (
    ("plan",),
    ("list", "search", "calculate"),
    ("read",),
    ("code",),
    ("delegate",),
    ("other",),
)
"""What is done one after the other; kinds that stand together are called at once."""

ONE_AT_MOST = frozenset(("plan", "list", "search", "calculate", "read", "code", "delegate"))
"""Of these kinds one tool is enough; others are all tried."""
BY_CODE = {"a slow tool": nap(), "try an error": "print('about to fail')\nprint(1 / 0)"}
"""What agents that act by code need no tool for. What fails comes last."""


def improvise(request: Request) -> Reply:
    if wants_plan(request):
        return Reply(tuple(spoken(plan_text(scene_of(request)))))
    if expects_code(request):
        return _with_code(request)
    if request.schema is not None and not request.tools:
        return Reply(tuple(spoken(json.dumps(_as_json(request), ensure_ascii=False))))
    if not request.tools and (said := chore(request.asked)) is not None:
        return Reply(tuple(spoken(said)))
    return _with_tools(request)


def next_calls(scene: Scene) -> list[tuple[str, Args]]:
    """The calls to make now; none means that it is time to answer. None is made twice."""
    left = MOST_CALLS - max(len(scene.made), len(scene.request.results))
    if left <= 0 or any(result.lost for result in scene.request.results):
        return []  # of a call that the framework does not tell us about, we could not know that it was made
    wanted = provoked_calls(scene)
    if scene.provoked("a long answer"):
        wanted = wanted or []
    fresh = wanted if wanted is not None else _staged(scene)
    new = [call for call in fresh if not scene.has_made(*call)]
    if wanted is not None and len(scene.made) >= len(wanted):
        return []  # what was provoked has happened
    return new[:left]


def _staged(scene: Scene) -> list[tuple[str, Args]]:
    named = [tool for tool in scene.tools if scene.names(tool) and kind_of(tool) != "final"]
    if named:
        return [call for tool in named if (call := _untried(tool, scene, certain=True)) is not None]
    for stage in STAGES:
        calls = [call for kind in stage for call in _of_kind(kind, scene)]
        if calls:
            return calls
    if not scene.made:
        avoided = ("final",) if scene.request.demands else ("final", "write", "wait")
        if scene.words and not scene.numbers and not scene.request.demands:
            avoided = (*avoided, "calculate")  # words are nothing to calculate with
        fitting = [tool for tool in scene.tools if kind_of(tool) not in avoided]
        fitting.sort(key=lambda tool: kind_of(tool) == "read")  # of a place that nobody has named we know nothing
        return [call for tool in fitting[:1] if (call := _untried(tool, scene, certain=True)) is not None]
    return [
        (tool.name, plan(tool, scene, done=True))
        for tool in scene.tools
        if kind_of(tool) == "plan" and scene.calls_of(tool) == 1
    ]


def _of_kind(kind: Kind, scene: Scene) -> Iterator[tuple[str, Args]]:
    """Calls of the tools of a kind that were not tried yet; the best one only, where one is enough."""
    tools = sorted(
        (tool for tool in scene.tools if kind_of(tool) == kind),
        key=lambda tool: (tool.name.lower() not in scene.question.lower(), second_best(kind, tool, scene)),
    )
    if kind in ONE_AT_MOST and any(scene.calls_of(tool) for tool in tools):
        return
    for tool in tools:
        call = _untried(tool, scene)
        if call is not None:
            yield call
            if kind in ONE_AT_MOST:
                return


def _untried(tool: Tool, scene: Scene, *, certain: bool = False) -> tuple[str, Args] | None:
    if scene.calls_of(tool):
        return None
    made = arguments(kind_of(tool), tool, scene)
    if made is None and certain:
        made = plain(tool, scene)
    return None if made is None else (tool.name, made)


def _with_tools(request: Request) -> Reply:
    scene = scene_of(request)
    calls = next_calls(scene)
    final = next((tool for tool in request.tools if kind_of(tool) == "final"), None)
    notice = NOTICE if request.is_first and final is None and not scene.is_delegated else ""
    if calls:
        return Reply(
            (*thought(thought_about(scene, calls)), *spoken(notice and f"{notice}\n\n"), *_called(calls, request))
        )
    text = answer(scene, unmet(scene))
    if final is None or scene.calls_of(final):  # a loop that hands its answer back to us gets it in words
        return Reply(tuple(spoken("\n\n".join(filter(None, (notice, text))))))
    fields = dict.fromkeys(final.properties, _introduced(scene, text))
    return Reply(tuple(_called([(final.name, filled(final, scene, **fields))], request)))


def _introduced(scene: Scene, text: str) -> str:
    """An answer that is handed over as a whole says who gives it: what was said on the way may not be shown."""
    return f"{NOTICE}\n\n{text}" if scene.request.is_first_question and not scene.is_delegated else text


def _called(calls: Iterable[tuple[str, Args]], request: Request) -> Iterator[AnyPiece]:
    for at, (name, args) in enumerate(calls):
        yield from called(at, f"call_{request.mark[:16]}_{at}", name, json.dumps(args, ensure_ascii=False))


def _with_code(request: Request) -> Reply:
    scene = code_scene(request)
    calls = [] if _is_bare_sum(scene) else next_calls(scene)
    if calls:
        thought_, code = thought_about(scene, calls), written(calls, scene)
    elif _wants_a_program(scene):
        thought_, code = _thought_of(scene), _bare_code(scene)
    else:
        thought_ = answering(scene)
        code = f"final_answer({_introduced(scene, answer(scene, unmet(scene, BY_CODE)))!r})"
    if request.schema is not None:
        return Reply(tuple(spoken(json.dumps({"thought": thought_, "code": code}, ensure_ascii=False))))
    return Reply(tuple(spoken(code_block(request, thought_, code))))


def _wants_a_program(scene: Scene) -> bool:
    """An agent that acts by code shows some of its own too, once; if it has no tools, at the least that."""
    results = scene.request.results
    if scene.provoked("a long answer"):
        return False
    if not results:
        return not unmet(scene, BY_CODE) or any(map(scene.provoked, BY_CODE))
    return not (scene.is_provoked or any(result.lost for result in results) or has_run_program(scene.request))


def _is_bare_sum(scene: Scene) -> bool:
    """Nothing but numbers: a program of our own does that better than whatever tools there are."""
    calculates = any(kind_of(tool) in ("calculate", "delegate") for tool in scene.tools)
    named = any(map(scene.names, scene.tools))
    return bool(scene.numbers) and not (scene.words or calculates or named or scene.is_provoked)


def _bare_code(scene: Scene) -> str:
    wanted = [code for phrase, code in BY_CODE.items() if scene.provoked(phrase)]
    return "\n".join(wanted) or program(scene, pages(scene))


def _thought_of(scene: Scene) -> str:
    wanted = [phrase for phrase in BY_CODE if scene.provoked(phrase)]
    if wanted:
        return f"I was asked for {listed([phrase.removeprefix('try ') for phrase in wanted])}, so I write code for it."
    if scene.numbers:
        return f"I want to work out {scene.task}. A few lines of Python do that."
    return "Before I answer, I count how much of what I found is about the question."


def _as_json(request: Request) -> Any:
    """For a request that wants JSON: the least that fits, with the question in its free texts."""
    scene = scene_of(request)
    return example(request.schema, lambda _: scene.question or scene.subject)
