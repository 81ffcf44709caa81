"""Creates the offline model's replies without a script: calls the offered tools in a fixed order, then answers.

Pure and deterministic: the reply follows from the request alone.
"""

import json
from collections.abc import Iterable, Iterator

from limelight.understudy.answer_texts import NOTICE, answer, chat_metadata, thought
from limelight.understudy.chat_requests import ChatRequest
from limelight.understudy.json_schema import example
from limelight.understudy.replies import AnyPiece, Reply, call_pieces, reasoning_pieces, text_pieces, text_reply
from limelight.understudy.smolagents_prompts import (
    calls_as_code,
    code_block,
    code_context,
    expects_code,
    has_run_program,
    plan_text,
    wants_plan,
)
from limelight.understudy.tool_arguments import (
    FAILING_CODE,
    SLEEP_CODE,
    Arguments,
    arguments_for,
    fill,
    forced_arguments,
    is_second_choice,
    plan,
    program,
)
from limelight.understudy.tool_kinds import Kind, kind_of
from limelight.understudy.trigger_phrases import Calls, triggered_calls, unserved_phrases
from limelight.understudy.turn_context import TurnContext, turn_context

MAX_CALLS = 6
"""How many tool calls the offline model makes for one user message."""

STAGES: tuple[tuple[Kind, ...], ...] = (
    ("plan",),
    ("list", "search", "calculate"),
    ("read",),
    ("code",),
    ("delegate",),
    ("other",),
)
"""The kinds of tools in the order in which they are called. The tools of one stage are called in parallel: one tool of
each kind, but all tools of the kind `other`."""

CODE_FOR_PHRASES = {"a slow tool": SLEEP_CODE, "try an error": FAILING_CODE}
"""The code that a code agent runs for a trigger phrase that no tool serves. Failing code comes last, so that the rest
runs first."""


def improvise(request: ChatRequest) -> Reply:
    if wants_plan(request):
        return text_reply(plan_text(request))
    if expects_code(request):
        return _code_reply(request)
    if request.schema is not None and not request.tools:
        context = turn_context(request)
        value = example(request.schema, lambda _: context.question or context.subject)
        return text_reply(json.dumps(value, ensure_ascii=False))
    if not request.tools and (metadata := chat_metadata(request.user_text)) is not None:
        return text_reply(metadata)
    return _tool_reply(request)


def next_calls(context: TurnContext) -> Calls:
    """Return the tool calls of the next reply; [] if the reply should be the answer. No call is made twice."""
    results = context.request.results
    remaining = MAX_CALLS - max(len(context.calls), len(results))
    if remaining <= 0 or any(result.call_missing for result in results):
        return []  # a call that the request does not contain cannot be recognised, and would be repeated
    triggered = triggered_calls(context)
    if triggered is None and context.has_phrase("a long answer"):
        return []
    if triggered is not None and len(context.calls) >= len(triggered):
        return []
    calls = _staged_calls(context) if triggered is None else triggered
    return [call for call in calls if not context.has_called(*call)][:remaining]


def _staged_calls(context: TurnContext) -> Calls:
    named = [tool for tool in context.tools if context.names_tool(tool) and kind_of(tool) != "final"]
    if named:
        return [(tool.name, forced_arguments(tool, context)) for tool in named if not context.count_calls(tool)]
    for stage in STAGES:
        if calls := [call for kind in stage for call in _calls_of_kind(kind, context)]:
            return calls
    if not context.calls:
        return _fallback_call(context)
    plans = [tool for tool in context.tools if kind_of(tool) == "plan" and context.count_calls(tool) == 1]
    return [(tool.name, plan(tool, context, done=True)) for tool in plans]


def _calls_of_kind(kind: Kind, context: TurnContext) -> Iterator[tuple[str, Arguments]]:
    """Yield a call of the best tool of a kind, if none was called in this turn; for the kind `other`, of every tool."""
    tools = [tool for tool in context.tools if kind_of(tool) == kind]
    if kind != "other" and any(map(context.count_calls, tools)):
        return
    tools.sort(
        key=lambda tool: (tool.name.lower() not in context.question.lower(), is_second_choice(kind, tool, context))
    )
    for tool in tools:
        arguments = None if context.count_calls(tool) else arguments_for(tool, context)
        if arguments is not None:
            yield tool.name, arguments
            if kind != "other":
                return


def _fallback_call(context: TurnContext) -> Calls:
    """Return a call of the first tool that neither writes nor waits; of any tool if the request requires a call."""
    avoided: set[Kind] = {"final"} if context.request.tool_required else {"final", "write", "wait"}
    if context.words and not context.numbers and not context.request.tool_required:
        avoided.add("calculate")
    tools = [tool for tool in context.tools if kind_of(tool) not in avoided]
    tools.sort(key=lambda tool: kind_of(tool) == "read")  # last, because no file or page to read is known
    return [(tool.name, forced_arguments(tool, context)) for tool in tools[:1]]


def _tool_reply(request: ChatRequest) -> Reply:
    context = turn_context(request)
    calls = next_calls(context)
    final = next((tool for tool in request.tools if kind_of(tool) == "final"), None)
    notice = NOTICE if not request.has_replies and final is None and not context.is_delegated else ""
    if calls:
        thinking = thought(context, calls)
        # smolagents, which has a tool for the final answer, drops reasoning: its agents think in the text.
        text = notice and f"{notice}\n\n" if final is None else thinking
        reasoning = reasoning_pieces(thinking) if final is None else ()
        return Reply((*reasoning, *text_pieces(text), *_pieces_of_calls(calls, request)))
    text = answer(context, unserved_phrases(context))
    if final is None or context.count_calls(final):  # the final-answer tool was already called: answer as text
        return text_reply(f"{notice}\n\n{text}".strip())
    arguments = fill(final, context, dict.fromkeys(final.properties, _with_notice(context, text)))
    return Reply(tuple(_pieces_of_calls([(final.name, arguments)], request)))


def _with_notice(context: TurnContext, text: str) -> str:
    """Put NOTICE before the final answer of the first turn.

    A user interface may show no other text of the turn.
    """
    return f"{NOTICE}\n\n{text}" if context.request.is_first_turn and not context.is_delegated else text


def _pieces_of_calls(calls: Iterable[tuple[str, Arguments]], request: ChatRequest) -> Iterator[AnyPiece]:
    for index, (name, arguments) in enumerate(calls):
        call_id = f"call_{request.digest[:16]}_{index}"
        yield from call_pieces(index, call_id, name, json.dumps(arguments, ensure_ascii=False))


def _code_reply(request: ChatRequest) -> Reply:
    context = code_context(request)
    calls = [] if _is_plain_arithmetic(context) else next_calls(context)
    if calls:
        text, code = thought(context, calls), calls_as_code(calls, context)
    elif _needs_program(context):
        phrase_code = [code for phrase, code in CODE_FOR_PHRASES.items() if context.has_phrase(phrase)]
        text, code = "I run a short program.", "\n".join(phrase_code) or program(context)
    else:
        final = answer(context, unserved_phrases(context, CODE_FOR_PHRASES))
        text, code = "I write the answer.", f"final_answer({_with_notice(context, final)!r})"
    if request.schema is not None:
        return text_reply(json.dumps({"thought": text, "code": code}, ensure_ascii=False))
    return text_reply(code_block(request, text, code))


def _needs_program(context: TurnContext) -> bool:
    """Whether a code agent should run a program now: once per turn, for a trigger phrase or after its tool calls."""
    results = context.request.results
    if context.has_phrase("a long answer"):
        return False
    if not results:
        return not unserved_phrases(context, CODE_FOR_PHRASES) or any(map(context.has_phrase, CODE_FOR_PHRASES))
    failed = any(result.call_missing for result in results)
    return not (context.phrases or failed or has_run_program(context.request))


def _is_plain_arithmetic(context: TurnContext) -> bool:
    """Whether the question is only a calculation that no offered tool can do, so that code has to calculate."""
    has_tool = any(kind_of(tool) in ("calculate", "delegate") or context.names_tool(tool) for tool in context.tools)
    return bool(context.numbers) and not (context.words or has_tool or context.phrases)
