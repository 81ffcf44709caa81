"""What the improviser and its recipes know about the moment: the question, its words and numbers, what was found.

Pure; made anew from every request.
"""

import json
import re
from typing import Any

import msgspec

from limelight.understudy.conversation import Request, Tool

PHRASES = ("try an error", "a long answer", "a slow tool", "an approval", "two helpers at once")
"""What a user can write to provoke something."""

DELEGATIONS = ("Look into this and report what you find:", "Check this from another side:")
"""How tasks for helpers begin; a helper that is an understudy too knows them again."""

COMMON = """
a about all also am an and another any are as at be been by call can check could did do does each file files find
first for from get give had has have he how i if in into is it its just let like list look make many me more most much
my need new no not now of on one only or other our out please read report search see she show side so some tell than
that the their them then there these they this those to try two up us use using was we were what when where which who
why will with would write you your
"""
FILE = re.compile(r"(?<![\w:/.])/?(?:[\w.-]+/)*[\w-]+\.(?:[a-z]{1,4}|ipynb|json5?)\b", re.IGNORECASE)
URL = re.compile(r"https?://[^\s\"'<>)\]},]+")


class Scene(msgspec.Struct, frozen=True):
    """The request, the tools on offer, and which of them were called since the user's last message."""

    request: Request
    tools: tuple[Tool, ...]
    made: tuple[tuple[str, str], ...] = ()
    """Calls already made: names and arguments, the latter as canonical JSON where they are JSON."""

    @property
    def question(self) -> str:
        """What the user wants, without the phrases that are meant for the understudy and without wrappings."""
        text = self.request.asked
        if wrapped := re.search(r"^Task:\n(.*?)\n---", text, re.MULTILINE | re.DOTALL):  # a managed agent's task
            text = wrapped[1]
        for phrase in PHRASES:
            text = re.sub(re.escape(phrase), "", text, flags=re.IGNORECASE)
        return " ".join(text.split())[:300].strip(" ,;:")

    @property
    def is_delegated(self) -> bool:
        """The question comes from another understudy, which has said who it is."""
        return self.question.startswith(DELEGATIONS)

    @property
    def words(self) -> list[str]:
        """The words that say what it is about, in their order."""
        found = (word for word in re.findall(r"[^\W\d_]{3,}", self.question) if word.lower() not in COMMON.split())
        return list(dict.fromkeys(found))[:4]

    @property
    def topic(self) -> str:
        return " ".join(self.words) or "anything"

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
        seen = [name for result in self.request.results for name in pattern.findall(result.text)]
        stems = [word.lower()[:4] for word in self.words]
        fitting = sorted(seen, key=lambda name: not any(stem in name.lower() for stem in stems))
        return list(dict.fromkeys([*asked, *fitting]))

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
