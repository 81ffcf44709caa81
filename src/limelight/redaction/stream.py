"""A text that comes in pieces, and in which something is hidden, wherever it is cut. Pure.

What may be the beginning of a secret is held back until it is clear whether it is one; with patterns, which may match
what is not there yet, until the line ends.
"""

import re

from limelight.auth import api_keys
from limelight.redaction.rules import HEAD, HIDDEN, Hiding, Span

MAX_LINE = 64 * 1024
"""Of a longer line that does not end only the end is held back."""
_OVERLAP = 1024
"""What a pattern may well match across the place where a long line is cut."""
_TOLD = HEAD - 1
"""So much of the beginning of a secret may be told before the rest is noticed: or else every word that ends like one
begins would be held back."""
_LINE_END = re.compile(r"[\r\n]")


class Pieces:
    """Takes pieces, and gives of them what may be told."""

    def __init__(self, hiding: Hiding) -> None:
        self._hiding = hiding
        self._text: str = ""
        """The end of what came: what is held back, and before it what a secret may have begun with."""
        self._done: int = 0
        """So much of it is told, or hidden."""
        self._ends_hidden: bool = False
        self._rest_of_line_is_hidden = False
        self._heads = None if hiding.needs_whole_texts else hiding.heads

    def passes(self, piece: str) -> bool:
        """Whether it can be told as it is, and then it counts as told: nothing is held back, and with what came before
        it there is no place where something may begin that is to be hidden. This is for every word that is said."""
        if self._heads is None or self._done != len(self._text):
            return False
        text = self._text + piece
        if self._heads.search(text) is not None:
            return False
        self._text = text[-_TOLD:]
        self._done = len(self._text)
        self._ends_hidden = self._ends_hidden and not piece
        return True

    def feed(self, piece: str) -> str:
        if self.passes(piece):
            return piece
        self._text += piece
        if self._rest_of_line_is_hidden and not self._skip_line():
            return ""
        spans = self._hiding.spans(self._text, self._done)
        first_open = self._first_open()
        end = max(first_open, self._done)
        for start, stop in spans:
            if start < end:
                end = max(end, stop)
        said = self._said(spans, end)
        self._keep(min(first_open, len(self._text) - _TOLD))
        if len(self._text) > 2 * MAX_LINE + self._longest_secret:  # a match that does not end
            self._text, self._done, self._rest_of_line_is_hidden = "", 0, True
            said += HIDDEN
        return said

    def rest(self) -> str:
        """What is still held back, when nothing comes any more."""
        return self._said(self._hiding.spans(self._text, self._done), len(self._text))

    @property
    def _longest_secret(self) -> int:
        return max(map(len, self._hiding.secrets), default=0)

    def _said(self, spans: list[Span], end: int) -> str:
        """What is told of the text up to there, which no span crosses."""
        said: list[str] = []
        at = self._done
        for start, stop in spans:
            if at < stop <= end:
                goes_on = start < at and self._ends_hidden
                said += [self._text[at:start], "" if goes_on else HIDDEN]
                self._ends_hidden, at = True, stop
        if at < end:
            said.append(self._text[at:end])
            self._ends_hidden = False
        self._done = end
        return "".join(said)

    def _keep(self, since: int) -> None:
        since = max(0, min(since, self._done))
        self._text, self._done = self._text[since:], self._done - since

    def _skip_line(self) -> bool:
        """Whether the line has come to its end."""
        ends = _LINE_END.search(self._text)
        self._text = "" if ends is None else self._text[ends.start() :]
        self._rest_of_line_is_hidden = ends is None
        return ends is not None

    def _first_open(self) -> int:
        """Where something may begin that is to be hidden, and is not whole yet."""
        text = self._text
        key = api_keys.BEGINNING.search(text, max(0, len(text) - api_keys.LENGTH))
        places = [
            len(text) if key is None else key.start(),
            *(_begins(secret, text) for secret in self._hiding.secrets),
        ]
        return min(*places, self._open_line() if self._hiding.needs_whole_texts else len(text))

    def _open_line(self) -> int:
        line = max(self._text.rfind("\n"), self._text.rfind("\r")) + 1
        if len(self._text) - line <= MAX_LINE:
            return line
        cut = max(self._done, len(self._text) - _OVERLAP)
        return min([cut, *(start for start, end in self._hiding.matches(self._text, self._done) if end > cut)])


def _begins(secret: str, text: str) -> int:
    """Where at the end of the text a secret begins that does not end; the length of the text if none does."""
    head = secret[: _TOLD + 1]
    at = text.find(head, max(0, len(text) - len(secret) + 1))
    while at >= 0 and not secret.startswith(text[at:]):
        at = text.find(head, at + 1)
    return len(text) if at < 0 else at
