"""What the offline model knows for its next reply: the user's question, the offered tools and the calls made so far.

Pure; created from each request.
"""

import json
import re
from typing import Any

import msgspec

from limelight.understudy.chat_requests import ChatRequest, Tool

TRIGGER_PHRASES = ("try an error", "a long answer", "a slow tool", "an approval", "two helpers at once")
"""Phrases in a user message that trigger a special behaviour of the offline model, such as a failing or slow tool call.
"""
BEFORE_PHRASE = r"(?:[,;:]?\s*\b(?:and|with|after|by|then|run|using|i want|give me|write|ask|please)\b)*[,;:]?\s*"
"""Matches connecting words before a trigger phrase, which are removed from the question with the phrase."""

FIND_OUT = "Find out"
"""First words of each task that the offline model gives a sub-agent."""
REPORT_REQUEST = "Report what you find in a few sentences, with your sources."
"""Last sentence of each task for a sub-agent, by which the sub-agent's offline model recognises a delegated task."""
OTHER_HELPER = "from another side"
"""Words after FIND_OUT in the second sub-agent's task, if both sub-agents get the same question."""

MAX_QUESTION_CHARACTERS = 10_000
"""Length limit of a question. Longer ones lose their middle, because the regular expressions would take minutes for
megabytes."""
MAX_WORDS = 5
MAX_NUMBERS = 8
FILE = re.compile(r"(?<![\w:/.])/?(?:[\w.-]+/)*[\w-]+\.(?:[a-z]{1,4}|ipynb|json5?)\b", re.IGNORECASE)
URL = re.compile(r"https?://[^\s\"'<>)\]},]+")

COMMON_WORDS = frozenset(
    re.findall(
        r"\w+",
        """
        a about add again all also am an and another answer any are as ask at be been but by calculate call can
        check code compare could delete describe did do does each explain few file files find first for from get
        give had happen happens has have he hello help helper helpers how i if in into is it its just know let like
        list look make many me mean means minus more most much multiply my need new no not now of on one only or
        other our out plan please plus print python read report research return returns run say says search see she
        should show side so some step sum summarise summarize take takes tell than that the their them then there
        these they think this those times to tool tools try two up us use used uses using want was we were what when
        where whether which who why will with work works would write you your
        """,
    )
)


def question_text(text: str) -> str:
    """Return the question in a user message, without trigger phrases and the text that frameworks put around it."""
    if len(text) > MAX_QUESTION_CHARACTERS:
        text = f"{text[: MAX_QUESTION_CHARACTERS // 2]} {text[-MAX_QUESTION_CHARACTERS // 2 :]}"
    if task := re.search(r"^Task:\n(.*?)\n---", text, re.MULTILINE | re.DOTALL):  # smolagents' managed agents
        text = task[1]
    for phrase in map(re.escape, TRIGGER_PHRASES):
        if re.search(phrase, text, re.IGNORECASE):  # BEFORE_PHRASE takes quadratic time where no phrase follows
            text = re.sub(BEFORE_PHRASE + phrase + r"(?: on the way)?", "", text, flags=re.IGNORECASE)
    text = re.sub(rf"{FIND_OUT}(?: {OTHER_HELPER})?: ", "", text.replace(REPORT_REQUEST, ""))
    return " ".join(text.split())[:300].strip(" ,;:")


def content_words(text: str) -> list[str]:
    """Return the distinct words of a text in order, without common words such as `the`."""
    found = re.findall(r"[^\W\d_]{3,}|[A-Z]{2,}|[^\W\d_a-zA-Z]{2,}", text)
    return list(dict.fromkeys(word for word in found if word.lower() not in COMMON_WORDS))


class TurnContext(msgspec.Struct, frozen=True):
    """What one reply is based on: the request, the offered tools, and the calls since the last user message."""

    request: ChatRequest
    tools: tuple[Tool, ...]
    calls: tuple[tuple[str, str], ...] = ()
    """Name and arguments of each call, with valid JSON in canonical form, so that equal arguments are equal texts."""

    @property
    def question(self) -> str:
        return question_text(self.request.user_text)

    @property
    def is_delegated(self) -> bool:
        """Whether the question is a task that another agent's offline model has delegated."""
        return REPORT_REQUEST in self.request.user_text

    @property
    def words(self) -> list[str]:
        """The words of the question without common ones; only those of X if the question is `... about X`."""
        about = self.question.rpartition("about ")[2]
        return (content_words(about) or content_words(self.question))[:MAX_WORDS]

    @property
    def subject(self) -> str:
        """The topic of the question as a short text, for search queries and free text fields."""
        return " ".join(self.words) or self.expression or "anything"

    @property
    def numbers(self) -> list[float]:
        found = re.findall(r"(?<![\w.])-?\d+(?:\.\d+)?(?![\w])", self.question)
        return [float(number) if "." in number else int(number[:15]) for number in found][:MAX_NUMBERS]

    @property
    def expression(self) -> str:
        """The arithmetic expression in the question, or else the sum of the question's numbers as an expression."""
        found = re.search(r"[\d.(]+(?:\s*[-+*/^×()]+\s*[\d.]+\)?)+", self.question)
        return found[0].strip(" .") if found else " + ".join(map(str, self.numbers))

    @property
    def proper_name(self) -> str:
        """The first proper name in the question: capitalized words that do not begin a sentence."""
        found = re.search(r"(?<=[a-z,] )[A-Z][\w'-]+(?: [A-Z][\w'-]+)*", self.question)
        return found[0] if found else ""

    @property
    def files(self) -> list[str]:
        """File names in the question and in the tool results, the best match first."""
        return self._locations(FILE)

    @property
    def urls(self) -> list[str]:
        return self._locations(URL)

    def _locations(self, pattern: re.Pattern[str]) -> list[str]:
        in_question = pattern.findall(self.question)
        in_results = [name.rstrip(".,;:!?") for result in self.request.results for name in pattern.findall(result.text)]
        stems = [word.lower()[:4] for word in self.words]
        matching = sorted(in_results, key=lambda name: not any(stem in name.lower() for stem in stems))
        known = list(dict.fromkeys([*in_question, *matching]))
        if OTHER_HELPER in self.request.user_text and not in_question:
            known[:2] = reversed(known[:2])  # the first helper reads the best match
        return known

    def has_phrase(self, phrase: str) -> bool:
        return phrase in self.request.user_text.lower()

    @property
    def phrases(self) -> list[str]:
        """The trigger phrases in the user's message."""
        return [phrase for phrase in TRIGGER_PHRASES if self.has_phrase(phrase)]

    def names_tool(self, tool: Tool) -> bool:
        """Whether the user's message names a tool: in backticks, after a verb such as `use`, or with underscores."""
        name, text = re.escape(tool.name), self.request.user_text
        if re.search(rf"`{name}`|\b(?:use|call|run|with)(?: the)? {name}\b", text, re.IGNORECASE):
            return True
        return bool("_" in tool.name and re.search(rf"\b{name}\b", text))

    def count_calls(self, tool: Tool) -> int:
        return sum(name == tool.name for name, _ in self.calls)

    def first_arguments(self, tool: Tool) -> dict[str, Any]:
        """Return the arguments of the first call of a tool; {} if there are none."""
        arguments = next((arguments for name, arguments in self.calls if name == tool.name), "")
        return json.loads(arguments) if arguments.startswith("{") else {}

    def has_called(self, name: str, arguments: dict[str, Any]) -> bool:
        return (name, _canonical(arguments)) in self.calls


def turn_context(request: ChatRequest) -> TurnContext:
    calls = tuple((call.name, _canonical_text(call.arguments)) for call in request.calls)
    return TurnContext(request, request.tools, calls)


def _canonical(arguments: Any) -> str:
    return json.dumps(arguments, sort_keys=True, ensure_ascii=False)


def _canonical_text(arguments: str) -> str:
    try:
        return _canonical(json.loads(arguments))
    except ValueError:
        return arguments
