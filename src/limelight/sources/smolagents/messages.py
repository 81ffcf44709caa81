"""Incremental parsers for streamed replies of a model: thought and code of a code agent, and plans. Pure.

`feed` takes the reply in deltas. Text that may be the beginning of a tag is held back until more text has arrived.
"""

from typing import Any, Literal, NamedTuple, cast

Kind = Literal["thought", "code"]
REGEX_CHARACTERS = frozenset("\\.^$*+?{}[]|()")
"""Characters that mark a tag as a regular expression."""
END_PLAN = "<end_plan>"


class Piece(NamedTuple):
    """A part of the thought or of the code in a reply."""

    kind: Kind
    text: str


class CodeParser:
    """Parser that separates the thought and the code in one reply of a code agent.

    The code has the form in which smolagents runs it: each block is stripped, and an empty line separates two blocks.
    """

    def __init__(self, tags: tuple[str, str]) -> None:
        self._end_tags: dict[Kind, str] = {"thought": tags[0], "code": tags[1]}
        """The tag that ends each kind of text."""
        self._is_literal = all(tags) and not REGEX_CHARACTERS & {*tags[0], *tags[1]}
        self._kind: Kind = "thought"
        self._held = ""
        self._spaces: str = ""
        self._begun = False
        """Whether the current thought or block of code has any text."""
        self._blocks = 0

    def feed(self, text: str) -> list[Piece]:
        if not self._is_literal:  # only smolagents can search for tags that are regular expressions
            return [Piece("thought", text)]
        pieces: list[Piece] = []
        text = self._held + text
        while True:
            before, tag, after = text.partition(self._end_tags[self._kind])
            if not tag:
                break
            self._add(before, pieces)
            self._switch()
            text = after
        kept = len(text) - tag_prefix_length(self._end_tags[self._kind], text)
        self._held = text[kept:]
        self._add(text[:kept], pieces)
        return pieces

    def end(self) -> list[Piece]:
        """Return the text that was held back. Called when the reply is complete.

        After unfinished code, the text is dropped, because it is the beginning of the end tag.
        """
        pieces: list[Piece] = []
        if self._kind == "thought":
            self._add(self._held, pieces)
        self._held = ""
        return pieces

    def _switch(self) -> None:
        self._kind = "code" if self._kind == "thought" else "thought"
        self._spaces, self._begun = "", False

    def _add(self, text: str, pieces: list[Piece]) -> None:
        """Append text to the pieces, without the whitespace around a thought or a block.

        Whitespace at the end is held back until more text follows.
        """
        text = self._spaces + text if self._begun else text.lstrip()
        stripped = text.rstrip()
        self._spaces = text[len(stripped) :]
        if not stripped:
            return
        if self._kind == "code" and not self._begun:
            self._blocks += 1
            stripped = f"\n\n{stripped}" if self._blocks > 1 else stripped
        self._begun = True
        pieces.append(Piece(self._kind, stripped))


class PlanParser:
    """Parser that extracts the plan from one reply. The texts of `feed` and `end` together equal `plan_in(reply)`.

    The plan ends at `<end_plan>` and is stripped. The first half of a surrogate pair is held back, too.
    """

    def __init__(self) -> None:
        self._held = ""
        self._begun = False
        self._ended = False

    def feed(self, text: str) -> str:
        if self._ended:
            return ""
        text, end, _ = (self._held + text).partition(END_PLAN)
        self._ended = bool(end)
        kept = len(text) - (0 if end else tag_prefix_length(END_PLAN, text) or _half_character(text))
        plan = text[:kept] if self._begun else text[:kept].lstrip()
        stripped = plan.rstrip()
        self._held = plan[len(stripped) :] + text[kept:]
        self._begun = self._begun or bool(stripped)
        return stripped

    def end(self) -> str:
        """Return the text that was held back. Called when the reply is complete."""
        return "" if self._ended else self._held.rstrip()


def plan_in(reply: str) -> str:
    """Return the plan in a complete reply."""
    return reply.partition(END_PLAN)[0].strip()


def tag_prefix_length(tag: str, text: str) -> int:
    """Return how many characters at the end of the text may be the beginning of the tag."""
    return next((size for size in range(min(len(tag) - 1, len(text)), 0, -1) if text.endswith(tag[:size])), 0)


def _half_character(text: str) -> int:
    """Return 1 if the text ends with the first half of a surrogate pair, else 0."""
    return int("\ud800" <= text[-1:] <= "\udbff")


def content_text(content: Any) -> str:
    """Return the text of a message's content, which is a string or a list of blocks."""
    if isinstance(content, list):
        blocks = [cast("dict[str, Any]", part) for part in cast("list[Any]", content) if isinstance(part, dict)]
        return "\n".join(str(block.get("text") or "") for block in blocks)
    return content if isinstance(content, str) else ""
