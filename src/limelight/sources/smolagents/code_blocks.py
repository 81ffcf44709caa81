"""Thought and code, told apart while a model writes both: `feed` takes pieces of its text as they come.

Pure. Code is given in the form that smolagents makes of it: each block stripped, blocks divided by an empty line. Text
that may be the beginning of a tag is held back until it is clear.
"""

from typing import Literal, NamedTuple

Kind = Literal["thought", "code"]
PATTERNS = frozenset("\\.^$*+?{}[]|()")
"""What makes a tag a regular expression."""


class Piece(NamedTuple):
    """A piece of thought or of code."""

    kind: Kind
    text: str


class CodeBlocks:
    """Follows one reply of a code agent."""

    def __init__(self, tags: tuple[str, str]) -> None:
        self._tags: dict[Kind, str] = {"thought": tags[0], "code": tags[1]}
        """What ends each kind of text."""
        self._readable = all(tags) and not PATTERNS & {*tags[0], *tags[1]}
        self._kind: Kind = "thought"
        self._held = ""
        self._spaces: str = ""
        self._begun = False
        self._blocks = 0

    def feed(self, text: str) -> list[Piece]:
        if not self._readable:  # the tags are patterns, which only smolagents itself can look for
            return [Piece("thought", text)]
        pieces: list[Piece] = []
        text = self._held + text
        while True:
            before, tag, after = text.partition(self._tags[self._kind])
            if not tag:
                break
            self._say(before, pieces)
            self._turn()
            text = after
        kept = len(text) - beginning_of(self._tags[self._kind], text)
        self._held = text[kept:]
        self._say(text[:kept], pieces)
        return pieces

    def end(self) -> list[Piece]:
        """What was held back, now that nothing more comes."""
        pieces: list[Piece] = []
        if self._kind == "thought":
            self._say(self._held, pieces)
        self._held = ""
        return pieces

    def _turn(self) -> None:
        self._kind = "code" if self._kind == "thought" else "thought"
        self._spaces, self._begun = "", False

    def _say(self, text: str, pieces: list[Piece]) -> None:
        """Spaces wait until something follows them: those around a block are not part of it."""
        text = self._spaces + text if self._begun else text.lstrip()
        bare = text.rstrip()
        self._spaces = text[len(bare) :]
        if not bare:
            return
        if self._kind == "code" and not self._begun:
            self._blocks += 1
            bare = f"\n\n{bare}" if self._blocks > 1 else bare
        self._begun = True
        pieces.append(Piece(self._kind, bare))


def beginning_of(tag: str, text: str) -> int:
    """How many characters at the end of the text may be the beginning of the tag."""
    return next((size for size in range(min(len(tag) - 1, len(text)), 0, -1) if text.endswith(tag[:size])), 0)
