"""What the improviser and its recipes know about the moment: the question, its words and numbers, what was found.

Pure; made anew from every request.
"""

import json
import re
from typing import Any

import msgspec

from limelight.understudy.conversation import Request, Tool
from limelight.understudy.topic import content_words, listed, topic_of

PHRASES = ("try an error", "a long answer", "a slow tool", "an approval", "two helpers at once")
"""What a user can write to provoke something."""

LEADING = r"(?:[,;:]?\s*\b(?:and|with|after|by|then|run|using|i want|give me|write|ask|please)\b)*[,;:]?\s*"
"""What leads up to such a phrase, and goes with it."""

REPORT = "Report what you find in a few sentences, with your sources."
"""How tasks for helpers end; a helper that is an understudy too knows them again."""

ANOTHER_SIDE = "from another side"
"""What the second of two helpers is told who look into the same thing."""

TASK_FIELDS = ("task", "description", "prompt", "request", "input", "task_description", "message")
MEMBER_FIELDS = ("subagent_type", "member_id", "agent", "agent_name", "member", "assignee")
"""Where tools that give a task to a helper want the task, and the helper."""

MAX_CHARACTERS = 10_000
"""Characters of a question that are looked at: half from its beginning, half from its end. The understudy shares its
thread with the server, and these expressions take minutes for a question of megabytes."""

FILE = re.compile(r"(?<![\w:/.])/?(?:[\w.-]+/)*[\w-]+\.(?:[a-z]{1,4}|ipynb|json5?)\b", re.IGNORECASE)
URL = re.compile(r"https?://[^\s\"'<>)\]},]+")


def plain_question(text: str) -> str:
    """What a message asks, without the phrases that are meant for the understudy and without wrappings."""
    if len(text) > MAX_CHARACTERS:
        text = f"{text[: MAX_CHARACTERS // 2]} {text[-MAX_CHARACTERS // 2 :]}"
    if wrapped := re.search(r"^Task:\n(.*?)\n---", text, re.MULTILINE | re.DOTALL):  # a managed agent's task
        text = wrapped[1]
    for phrase in PHRASES:
        text = re.sub(LEADING + re.escape(phrase) + r"(?: on the way)?", "", text, flags=re.IGNORECASE)
    return " ".join(text.replace(REPORT, "").split())[:300].strip(" ,;:")


class Scene(msgspec.Struct, frozen=True):
    """The request, the tools on offer, and which of them were called since the user's last message."""

    request: Request
    tools: tuple[Tool, ...]
    made: tuple[tuple[str, str], ...] = ()
    """Calls already made: names and arguments, the latter as canonical JSON where they are JSON."""

    @property
    def question(self) -> str:
        """What the user wants."""
        return plain_question(self.request.asked)

    @property
    def is_delegated(self) -> bool:
        """The question comes from another understudy, which has said who it is."""
        return REPORT in self.request.asked

    @property
    def words(self) -> list[str]:
        """The words that say what it is about, in their order."""
        return content_words(topic_of(self.question))[:5]

    @property
    def topic(self) -> str:
        """What it is about, as a phrase that stands in a sentence; empty if it is about nothing that we can see."""
        return topic_of(self.question) or self.task

    @property
    def task(self) -> str:
        """The sum that is asked for: as it is written, or that of all the numbers."""
        if not self.numbers:
            return ""
        return self.sum_ or f"the sum of {listed([str(number) for number in self.numbers])}"

    @property
    def sum_(self) -> str:
        """Arithmetic that is written in the question."""
        found = re.search(r"[\d.(]+(?:\s*[-+*/^×()]+\s*[\d.]+\)?)+", self.question)
        return found[0].strip(" .") if found else ""

    @property
    def subject(self) -> str:
        """The topic as an argument: what is looked for, or put into a field that takes any text."""
        return self.topic.strip("“”") or "anything"

    @property
    def proper_name(self) -> str:
        """The first name in the question: words with a capital that do not begin a sentence."""
        found = re.search(r"(?<=[a-z,] )[A-Z][\w'-]+(?: [A-Z][\w'-]+)*", self.question)
        return found[0] if found else ""

    @property
    def numbers(self) -> list[float]:
        found = re.findall(r"(?<![\w.])-?\d+(?:\.\d+)?(?![\w])", self.question)
        return [float(number) if "." in number else int(number[:15]) for number in found][:8]

    @property
    def files(self) -> list[str]:
        """Names of files in the question and in what the tools returned, the most fitting first."""
        return self._found(FILE)

    @property
    def urls(self) -> list[str]:
        return self._found(URL)

    def _found(self, pattern: re.Pattern[str]) -> list[str]:
        asked = pattern.findall(self.question)
        seen = [name.rstrip(".,;:!?") for result in self.request.results for name in pattern.findall(result.text)]
        stems = [word.lower()[:4] for word in self.words]
        fitting = sorted(seen, key=lambda name: not any(stem in name.lower() for stem in stems))
        known = list(dict.fromkeys([*asked, *fitting]))
        if ANOTHER_SIDE in self.question and not asked:
            known[:2] = reversed(known[:2])  # the other helper has the first one
        return known

    def asks_for(self, name: str) -> bool:
        return name in self.question

    def provoked(self, phrase: str) -> bool:
        return phrase in self.request.asked.lower()

    @property
    def is_provoked(self) -> bool:
        return any(map(self.provoked, PHRASES))

    def names(self, tool: Tool) -> bool:
        """The user speaks of this very tool: by a name that is no ordinary word, in backticks, or after `use`."""
        name = re.escape(tool.name)
        if re.search(rf"`{name}`|\b(?:use|call|run|with)(?: the)? {name}\b", self.request.asked, re.IGNORECASE):
            return True
        return bool("_" in tool.name and re.search(rf"\b{name}\b", self.request.asked))

    def calls_of(self, tool: Tool) -> int:
        return sum(name == tool.name for name, _ in self.made)

    def made_with(self, tool: Tool) -> dict[str, Any]:
        """The arguments of the first call of a tool; none if they were not written as JSON."""
        written = next((arguments for name, arguments in self.made if name == tool.name), "")
        return json.loads(written) if written.startswith("{") else {}

    def has_made(self, name: str, arguments: dict[str, Any]) -> bool:
        return (name, canonical(arguments)) in self.made


def canonical(arguments: Any) -> str:
    return json.dumps(arguments, sort_keys=True, ensure_ascii=False)


def scene_of(request: Request) -> Scene:
    return Scene(request, request.tools, tuple((call.name, _known(call.arguments)) for call in request.calls))


def _known(arguments: str) -> str:
    try:
        return canonical(json.loads(arguments))
    except ValueError:
        return arguments
