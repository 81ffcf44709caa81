"""What a question to a person is about: a tool by its name, or what a graph asks in words of its own. Pure."""

from typing import Any, NamedTuple

from limelight.cli.view.sanitize import one_line, safe

IN_OWN_WORDS = "interrupt"
"""The name of a question that is not about a tool: a LangGraph graph has called `interrupt(…)`."""
WORDS = ("question", "prompt", "message", "text", "title", "description", "value")
"""Where such a question has its words, the likeliest first."""
LONGEST = 80


class Subject(NamedTuple):
    """`args` are those that the title does not tell."""

    title: str
    args: dict[str, Any] | str
    own_words: bool = False

    @property
    def name(self) -> str:
        """The title inside of a sentence."""
        return f'"{self.title}"' if self.own_words else self.title


def subject_of(name: str, args: dict[str, Any] | str) -> Subject:
    """Words that do not fit into a title stay among the arguments, too."""
    if name == IN_OWN_WORDS and isinstance(args, dict):
        key = next((key for key in WORDS if isinstance(args.get(key), str) and args[key].strip()), None)
        if key is not None:
            title, whole = one_line(args[key], LONGEST), safe(args[key]).strip()
            rest = {other: value for other, value in args.items() if other != key}
            return Subject(title, rest if title == whole else args, own_words=True)
    return Subject(one_line(name, LONGEST), args)
