"""Reads smolagents' prompts and writes replies for them: code for code agents, and plans as text.

Pure. The tools of a code agent are function signatures in the system prompt, and its calls are code.
"""

import re
from collections.abc import Iterable
from typing import Any

from limelight.understudy.chat_requests import AssistantMessage, ChatRequest, Tool, UserMessage
from limelight.understudy.tool_arguments import PROGRAM_COMMENT, Arguments, plan_steps
from limelight.understudy.tool_results import parsed_results
from limelight.understudy.turn_context import TurnContext, turn_context

SIGNATURE = re.compile(r"^\s*def (\w+)\((.*?)\) ?->\s*(\w*)", re.MULTILINE)
TYPES = {
    "str": "string",
    "int": "integer",
    "float": "number",
    "bool": "boolean",
    "list": "array",
    "dict": "object",
}
END_OF_PLAN = "<end_plan>"


def expects_code(request: ChatRequest) -> bool:
    return not request.tools and "final_answer" in request.system and "Thought:" in request.system


def code_context(request: ChatRequest) -> TurnContext:
    """Return a code agent's TurnContext, with tools from its system prompt and calls from the code it has written."""
    tools = tuple(_tool(*found) for found in SIGNATURE.findall(request.system) if found[0] != "final_answer")
    code = _code_so_far(request)
    calls = [(tool.name, "") for tool in tools for _ in re.findall(rf"\b{tool.name}\(", code)]
    return TurnContext(request, tools, tuple(calls))


def has_run_program(request: ChatRequest) -> bool:
    return PROGRAM_COMMENT in _code_so_far(request)


def _code_so_far(request: ChatRequest) -> str:
    replies = [entry for entry in request.current_turn if isinstance(entry, AssistantMessage)]
    return "\n".join(f"{reply.text} {reply.calls}" for reply in replies)


def _tool(name: str, signature: str, returns: str) -> Tool:
    """Return the tool for a signature such as `query: string, limit: int = 5`; a default makes an argument optional."""
    properties: dict[str, Any] = {}
    required: list[str] = []
    for parameter in re.split(r",\s*(?![^\[]*\])", signature):
        field, _, annotation = parameter.partition(":")
        field = field.strip()
        if field.isidentifier():
            type_name = (re.findall(r"\w+", annotation) or ["string"])[0]
            properties[field] = {"type": TYPES.get(type_name, type_name)}
            if "=" not in annotation and field != "additional_args":
                required.append(field)
    return Tool(name, "", {"type": "object", "properties": properties, "required": required}, returns)


def code_block(request: ChatRequest, thought: str, code: str) -> str:
    """Return a reply with a thought, and with code between the markers that the system prompt prescribes."""
    start, end = ("<code>", "</code>") if "<code>" in request.system else ("```python", "```")
    return f"Thought: {thought}\n{start}\n{code.replace(end, '(code)')}\n{end}"


def calls_as_code(calls: Iterable[tuple[str, Arguments]], context: TurnContext) -> str:
    """Return Python code that makes these calls and prints their results, lists item by item."""
    returns = {tool.name: tool.returns for tool in context.tools}
    lines: list[str] = []
    for name, arguments in calls:
        call = f"{name}({', '.join(f'{key}={value!r}' for key, value in arguments.items())})"
        is_list = returns.get(name) in ("array", "list")
        lines += [f"for item in {call}:", "    print(item)"] if is_list else [f"result = {call}", "print(result)"]
    return "\n".join(lines)


def wants_plan(request: ChatRequest) -> bool:
    """Whether the request asks for a plan, in its system prompt or in its newest message."""
    newest = request.results[-1].text if request.results else request.user_text
    return END_OF_PLAN in newest or END_OF_PLAN in request.system


def plan_text(request: ChatRequest) -> str:
    """Return a plan as text; if there are tool results, an updated plan with the titles of the pages found."""
    prompt = f"{request.system}\n{request.user_text}"
    tasks = re.findall(r"(?:here is your task|the following task):\s*```\n(.*?)\n\s*```", prompt, re.S | re.I)
    task = " ".join(tasks[0].split())[:200] if tasks else turn_context(request).question
    lines = [f"## 1. {'Updated facts' if request.results else 'Facts'} survey", f"- The task: {task}"]
    if request.results:
        passages = [passage for result in parsed_results(turn_context(request)) for passage in result.passages]
        titles = list(dict.fromkeys(passage.title for passage in passages if passage.title))
        lines += [f"- Found: {title}" for title in titles[:4]] or [f"- Results so far: {len(request.results)}"]
    steps = plan_steps(turn_context(ChatRequest(model="", entries=(UserMessage(task),))))
    lines += ["", "## 2. Plan", *(f"{number}. {step}" for number, step in enumerate(steps, 1)), END_OF_PLAN]
    return "\n".join(lines)
