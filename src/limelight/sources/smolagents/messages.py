"""Incremental parsers that find thoughts, code and plans in the streamed replies of a model. Pure.

`feed` takes the reply in deltas. Text that may be the beginning of a tag is held back until more text has arrived.
"""

import re
from typing import Any, Literal, NamedTuple

from limelight.json_values import fields_of, items_of
from limelight.streamed_json import StringFieldDecoder

Kind = Literal["thought", "code", "discard"]
REGEX_CHARACTERS = frozenset("\\.^$*+?{}[]|()")
"""Characters that show that a code tag is a regular expression."""
FENCES = ("```python", "```py")
"""The Markdown fences that smolagents accepts around code if a reply does not use the agent's own tags."""
FENCE_END = "\n```"
END_PLAN = "<end_plan>"


class Piece(NamedTuple):
    """A piece of a model's reply: thought or code. With `discard`, the code up to here turned out not to be run."""

    kind: Kind
    text: str


class CodeParser:
    """Separates the thought and the code in one reply of a code agent.

    The code has the form in which smolagents runs it: each block is stripped, and an empty line separates two blocks.
    Blocks in Markdown fences count only in a reply without the agent's own tags.
    """

    def __init__(self, tags: tuple[str, str], fences: tuple[str, ...] = FENCES) -> None:
        self._tags = tags
        self._is_literal = all(tags) and not REGEX_CHARACTERS & {*tags[0], *tags[1]}
        self._in_thought = _Tokens(tags[0], *fences)
        self._in_thought_after_tags = _Tokens(tags[0])
        self._in_tags = _Tokens(tags[1])
        self._in_fence = _Tokens(FENCE_END, tags[0])
        self._tokens = self._in_thought
        """The tags that can end the current thought or block of code."""
        self._held = ""
        self._spaces: str = ""
        self._begun = False
        """Whether the current thought or block of code has any text yet."""
        self._blocks = 0
        self._has_tags = False

    def feed(self, text: str) -> list[Piece]:
        if not self._is_literal:  # only smolagents can search for tags that are regular expressions
            return [Piece("thought", text)]
        pieces: list[Piece] = []
        text = self._held + text
        while found := self._tokens.find(text):
            start, token = found
            self._add(text[:start], pieces)
            self._switch(token, pieces)
            text = text[start + len(token) :]
        kept = len(text) - self._tokens.prefix_length(text)
        self._held = text[kept:]
        self._add(text[:kept], pieces)
        return pieces

    def end(self) -> list[Piece]:
        """Return the pieces that were held back. Must be called when the reply is complete.

        After unfinished code, the text is dropped, because it is the beginning of the end tag.
        """
        pieces: list[Piece] = []
        if self._kind == "thought":
            self._add(self._held, pieces)
        self._held = ""
        return pieces

    @property
    def _kind(self) -> Kind:
        return "code" if self._tokens in (self._in_tags, self._in_fence) else "thought"

    def _switch(self, token: str, pieces: list[Piece]) -> None:
        self._spaces, self._begun = "", False
        if self._tokens is self._in_tags:
            self._tokens = self._in_thought_after_tags
        elif token == self._tags[0]:
            if self._blocks and not self._has_tags:  # smolagents ignores fences in a reply with tags
                pieces.append(Piece("discard", ""))
                self._blocks = 0
            self._tokens, self._has_tags = self._in_tags, True
        else:
            self._tokens = self._in_thought if self._tokens is self._in_fence else self._in_fence

    def _add(self, text: str, pieces: list[Piece]) -> None:
        """Append text to the pieces, without the whitespace around a thought or a block of code.

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


class _Tokens:
    """Finds tags in text that arrives in deltas, where a tag may be split or be the beginning of a longer one."""

    def __init__(self, *tokens: str) -> None:
        self._tokens = tuple(dict.fromkeys(tokens))
        self._pattern = re.compile("|".join(map(re.escape, self._tokens)))

    def find(self, text: str) -> tuple[int, str] | None:
        """Return the first tag in a text and its position; None while more text may still make the tag a longer one."""
        match = self._pattern.search(text)
        if match is None or match.start() >= len(text) - self.prefix_length(text):
            return None
        return match.start(), match[0]

    def prefix_length(self, text: str) -> int:
        """Return how many characters at the end of the text may be the beginning of a tag."""
        return max(tag_prefix_length(token, text) for token in self._tokens)


class StructuredParser:
    """Parses a code agent's structured reply: a JSON object with the keys `thought` and `code`.

    smolagents runs the code without the agent's tags around it.
    """

    def __init__(self, tags: tuple[str, str]) -> None:
        self._fields = StringFieldDecoder("thought", "code")
        self._tag = tags[0]
        self._tagged = CodeParser(tags, fences=())
        self._beginning: str | None = ""
        """The beginning of the code, while it may still be a tag; None after that."""
        self._has_tag = False

    def feed(self, text: str) -> list[Piece]:
        return [piece for key, text in self._fields.feed(text) for piece in self._pieces(key, text)]

    def end(self) -> list[Piece]:
        """Return the pieces that were held back. Must be called when the reply is complete."""
        held, self._beginning = self._beginning, None
        return [Piece("code", held)] if held else []

    def _pieces(self, key: str, text: str) -> list[Piece]:
        if key == "thought":
            return [Piece("thought", text)]
        if self._beginning is not None:
            text, self._beginning = self._beginning + text, None
            start = text.lstrip()
            if len(start) < len(self._tag) and self._tag.startswith(start):
                self._beginning = text
                return []
            self._has_tag = start.startswith(self._tag)
        if not self._has_tag:
            return [Piece("code", text)]
        return [piece for piece in self._tagged.feed(text) if piece.kind == "code"]


class PlanParser:
    """Extracts the plan from a reply. The texts of `feed` and `end` together equal `plan_in(reply)`.

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
        """Return the text that was held back. Must be called when the reply is complete."""
        return "" if self._ended else self._held.rstrip()


def plan_in(reply: str) -> str:
    """Return the plan in a model's complete reply: the text before `<end_plan>`."""
    return reply.partition(END_PLAN)[0].strip()


def tag_prefix_length(tag: str, text: str) -> int:
    """Return how many characters at the end of the text may be the beginning of the tag."""
    return next((size for size in range(min(len(tag) - 1, len(text)), 0, -1) if text.endswith(tag[:size])), 0)


def _half_character(text: str) -> int:
    """Return 1 if the text ends with the first half of a UTF-16 surrogate pair, else 0."""
    return int("\ud800" <= text[-1:] <= "\udbff")


def content_text(content: Any) -> str:
    """Return the text of a message's content, which is a string or a list of blocks."""
    if isinstance(content, str):
        return content
    blocks = [fields for part in items_of(content) if (fields := fields_of(part))]
    return "\n".join(str(block.get("text") or "") for block in blocks)
