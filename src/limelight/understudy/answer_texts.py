"""The texts that the offline model writes without a script: thoughts before calls, answers from tool results, titles.

Pure. Sentences are fixed templates; everything else in an answer is quoted from tool results.
"""

import re
from collections.abc import Iterable, Sequence
from typing import cast

from limelight.understudy.chat_requests import Tool
from limelight.understudy.excerpts import count_matches, excerpt, truncate
from limelight.understudy.tool_arguments import Arguments
from limelight.understudy.tool_kinds import MEMBER_FIELDS, Kind, kind_of
from limelight.understudy.tool_results import ParsedResult, Passage, parsed_results
from limelight.understudy.turn_context import TurnContext

NOTICE = (
    "I am Limelight's understudy, a stand-in without a model: for a real one set LIMELIGHT_MODEL, OPENAI_BASE_URL "
    "and OPENAI_API_KEY."
)
NOTHING = "I found nothing"
THOUGHTS: dict[Kind, str] = {
    "plan": "I write the plan.",
    "list": "I look at which files there are.",
    "search": "I search for “{value}”.",
    "read": "I read {value}.",
    "calculate": "I calculate with `{name}`.",
    "delegate": "I ask {value} for a report.",
    "code": "I run a short program.",
    "wait": "I call `{name}`, which takes a while.",
}
MAX_EXCERPTS, MAX_SOURCES = 5, 8
MAX_CHARACTERS = 400
"""Length limit of an excerpt in an answer."""
LONG_ANSWER_WORDS = 2000
MARKDOWN_TABLE = re.compile(r"(?m)^\|.+\|\s*\n\|[\s:|-]+\|\s*\n(?:\|.*\|\s*(?:\n|\Z))+")


def thought(context: TurnContext, calls: Iterable[tuple[str, Arguments]]) -> str:
    """Return the reasoning text before tool calls, with one sentence for each call, such as `I read bees.md.`"""
    tools = {tool.name: tool for tool in context.tools}
    phrases = " and ".join(phrase.removeprefix("try ") for phrase in context.phrases)
    sentences = [f"You asked for {phrases}."] if phrases else []
    for name, arguments in calls:
        kind = kind_of(tools.get(name, Tool(name)))
        value = next(iter(arguments.values()), "") if kind != "delegate" else _member(name, arguments)
        text = " ".join(map(str, cast("list[object]", value))) if isinstance(value, list) else str(value)
        sentences.append(THOUGHTS.get(kind, "I call `{name}`.").format(name=name, value=truncate(text, 80)))
    return " ".join(dict.fromkeys(sentences))


def answer(context: TurnContext, unserved: Sequence[str] = ()) -> str:
    """Return the final answer as Markdown. `unserved` are the trigger phrases that no offered tool can serve."""
    refusal = f"You asked for {' and '.join(unserved)}, but no tool on offer can do that." if unserved else ""
    if context.has_phrase("a long answer"):
        return _joined(refusal, long_answer(context.subject))
    results = parsed_results(context)
    if results:
        return _joined(refusal, *_document(context, results))
    return refusal or _without_results(context)


def _without_results(context: TurnContext) -> str:
    if not context.tools:
        return f"You said: “{context.question}”. Without a tool on offer, that is all I can tell."
    return f"{_nothing(context)} Tools that change something or wait I call only if you name them."


def _nothing(context: TurnContext) -> str:
    names = ", ".join(f"`{tool.name}`" for tool in context.tools if tool.name != "final_answer")
    if context.words or context.numbers:
        return f"{NOTHING} about {context.subject}. My tools: {names}."
    return f"I can use these tools: {names}. Ask me about something, and I show what they return."


def _document(context: TurnContext, results: Sequence[ParsedResult]) -> Iterable[str]:
    """Yield the sections of an answer: excerpts, quoted tool results, errors of tools, and sources.

    A file listing is quoted only if there are no excerpts and no other quoted results.
    """
    sources: dict[str, str] = {}
    sections = _excerpts(context, [result for result in results if not result.markdown], sources)
    quoted = [result for result in results if result.markdown]
    if sections or any(result.kind != "list" for result in quoted):
        quoted = [result for result in quoted if result.kind != "list"]
    for result in quoted:
        sections.append(_quotation(result))
        _cite(result.passages, sources)
    errors = [f"{_call(result)} failed: {result.error}." for result in results if result.error]
    yield from sections or ([] if errors else [_nothing(context)])
    yield " ".join(dict.fromkeys(errors))
    yield _source_list(sources, in_one_line=context.is_delegated)


def _quotation(result: ParsedResult) -> str:
    separator = "\n\n" if "\n" in result.markdown else " "
    return f"{_call(result)} {'printed' if result.kind == 'code' else 'returned'}:{separator}{result.markdown}"


def _call(result: ParsedResult) -> str:
    """Return the text for the call that produced a result: `read_file(bees.md)` or `The program`."""
    if result.kind == "code":
        return "The program"
    if result.name == "tool":
        return "A tool"
    values = ", ".join(map(str, result.arguments.values())).replace("`", "'")
    return f"`{result.name}({truncate(' '.join(values.split()), 60)})`"


def _excerpts(context: TurnContext, results: Sequence[ParsedResult], sources: dict[str, str]) -> list[str]:
    """Return excerpts of the passages that match the question best, with at most one table. Adds to `sources`.

    A passage is left out if it has at most half as many of the question's words as the best passage. In a delegated
    task only the best passage is quoted.
    """
    found = [(result, passage) for result in results for passage in result.passages if passage.text]
    found.sort(key=lambda pair: (_count_question_words(context, *pair), len(pair[1].text)), reverse=True)
    best = _count_question_words(context, *found[0]) if found else 0
    excerpts: list[str] = []
    tables: list[str] = []
    used: set[str] = set()
    for result, passage in found:
        is_enough = len(excerpts) == (1 if context.is_delegated else MAX_EXCERPTS)
        if is_enough or passage.location in sources or _count_question_words(context, result, passage) * 2 <= best:
            continue
        title = context.subject if result.kind == "delegate" else f"{passage.title} {passage.location}"
        words = context.words or [context.subject]
        if text := excerpt(passage.text, words, MAX_CHARACTERS, title=title, used=used):
            excerpts.append(f"**{_label(result, passage)}**: {text}")
            tables += _tables_about(passage, context)
            _cite([passage, *(result.passages[1:] if result.kind == "delegate" else ())], sources)
    if len(excerpts) == 1:
        excerpts = [excerpts[0].partition("**: ")[2]]
    return [*excerpts, *tables[:1]]


def _count_question_words(context: TurnContext, result: ParsedResult, passage: Passage) -> int:
    """Return how many words of the question a passage contains; at least 1 for a sub-agent's report with findings."""
    matches = count_matches(f"{passage.title} {passage.location} {passage.text}", context.words)
    return max(matches, 1) if result.kind == "delegate" and not passage.text.startswith(NOTHING) else matches


def _tables_about(passage: Passage, context: TurnContext) -> list[str]:
    """Return the Markdown tables in a passage whose header has a word of the question."""
    tables = [found[0].strip() for found in MARKDOWN_TABLE.finditer(passage.text)]
    return [table for table in tables if count_matches(table.partition("\n")[0], context.words)]


def _label(result: ParsedResult, passage: Passage) -> str:
    if result.kind == "delegate":
        return _member(result.name, result.arguments)
    return f"`{passage.location}`" if passage.location and "://" not in passage.location else passage.title


def _member(name: str, arguments: Arguments) -> str:
    """Return the name of the sub-agent to which a call delegates: one of its arguments, or else the tool's name."""
    return next((str(arguments[field]) for field in MEMBER_FIELDS if arguments.get(field)), name)


def _cite(passages: Iterable[Passage], sources: dict[str, str]) -> None:
    for passage in passages:
        if passage.location:
            sources.setdefault(passage.location, passage.title)


def _source_list(sources: dict[str, str], *, in_one_line: bool) -> str:
    links = [_link(location, title) for location, title in list(sources.items())[:MAX_SOURCES]]
    if len(links) == 1 or (links and in_one_line):
        return f"Source{'s' if len(links) > 1 else ''}: {', '.join(links)}"
    return "\n".join(["### Sources", "", *(f"- {link}" for link in links)]) if links else ""


def _link(location: str, title: str) -> str:
    if not re.match("https?://", location):
        return f"`{location}`"
    url = location.replace("(", "%28").replace(")", "%29").replace(" ", "%20")
    name = re.sub(r"[\[\]]", "", title)
    return f"[{name}]({url})" if name and title != location else f"<{url}>"


def _joined(*parts: str) -> str:
    return "\n\n".join(filter(None, parts))


def long_answer(subject: str) -> str:
    """Return a filler answer of about two thousand words in sections, for the trigger phrase `a long answer`."""
    sentences = (
        f"There is much to be said about {subject}, and a stand-in says it without knowing any of it.",
        "A long answer shows how text flows: word by word, line by line, and never all at once.",
        "Somebody who scrolls up while it grows should stay where they are.",
        "Somebody who closes the window and comes back should find every word again.",
        "Numbers such as 1, 2 and 3, words in *italics* and `names in code` are here to be drawn well.",
        "What is cut in the middle goes on from there, with nothing lost and nothing doubled.",
    )
    parts = [f"# A long answer about {subject}"]
    words = 0
    while words < LONG_ANSWER_WORDS:
        first = len(parts) % len(sentences)
        rotated = [*sentences[first:], *sentences[:first]]
        parts.append(
            f"## Part {len(parts)}\n\n{' '.join(rotated[:3])}\n\n- {rotated[3]}\n- {rotated[4]}\n\n{rotated[5]}"
        )
        words += len(parts[-1].split())
    return "\n\n".join(parts)


def chat_metadata(prompt: str) -> str | None:
    """Return the reply to a chat program's request for a title, tags or follow-up questions; None for other prompts."""
    found = re.search(
        r"\b(?:generate|create|suggest|write|give|provide)\b[^\n]{0,80}\b(title|tag|follow-?up)s?\b", prompt, re.I
    )
    if found is None:
        return None
    wanted, as_json = found[1].lower(), "json" in prompt.lower()
    if wanted == "title":
        messages = re.findall(r"^(?:user|human):\s*(.+)$", prompt, re.MULTILINE | re.IGNORECASE)
        words = re.findall(r"\w+", messages[0] if messages else "")[:5] or ["A", "talk", "with", "the", "understudy"]
        return f'{{"title": "{" ".join(words)}"}}' if as_json else " ".join(words)
    if wanted == "tag":
        return '{"tags": ["understudy"]}' if as_json else "understudy"
    return '{"follow_ups": ["What else is there?"]}' if as_json else "What else is there?"
