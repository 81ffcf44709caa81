"""Removes secrets from a text that arrives in deltas, even if a secret is split between deltas. Pure.

Text that may be the beginning of a secret is held back until the next deltas show whether it is one. If the settings
have patterns, each line is held back until it ends, because a pattern may match text that has not arrived yet.
"""

import re

from limelight.auth import api_keys
from limelight.redaction.rules import PREFIX_LENGTH, REDACTED, Redactor, Span

MAX_LINE = 64 * 1024
"""Maximum length of a line that is held back completely, in characters. Of a longer line, only the end is held."""
_OVERLAP = 1024
"""Number of characters at the end of a long line that are held, so that a pattern can match across the split."""
_PASSED_PREFIX = PREFIX_LENGTH - 1
"""Number of characters of a secret that may pass before it is recognized, because fewer characters match many texts."""
_LINE_END = re.compile(r"[\r\n]")


class StreamRedactor:
    """Removes secrets from one text that arrives in deltas."""

    def __init__(self, redactor: Redactor) -> None:
        self._redactor = redactor
        self._text: str = ""
        """The held text and, before it, a few characters that were already returned and may begin a secret."""
        self._done: int = 0
        """Number of characters at the start of `_text` that are already returned or redacted."""
        self._ends_redacted: bool = False
        self._skips_line = False
        """Whether the rest of the line is dropped, because a pattern matches a part that is too long to hold."""
        self._prefixes = None if redactor.needs_complete_texts else redactor.secret_prefixes

    def passes(self, piece: str) -> bool:
        """Whether a delta needs no redaction, because no text is held and no secret can begin in the delta.

        If True, the redactor has recorded the delta. If False, the caller must pass the delta to `feed`. This is the
        fast path for texts of models.
        """
        if self._prefixes is None or self._done != len(self._text):
            return False
        text = self._text + piece
        if self._prefixes.search(text) is not None:
            return False
        self._text = text[-_PASSED_PREFIX:]
        self._done = len(self._text)
        self._ends_redacted = self._ends_redacted and not piece
        return True

    def feed(self, piece: str) -> str:
        """Take the next delta of the text, and return the redacted text that can be passed on now. The rest is held."""
        if self.passes(piece):
            return piece
        self._text += piece
        if self._skips_line and not self._skip_line():
            return ""
        spans = self._redactor.spans(self._text, self._done)
        first_open = self._first_open()
        end = max(first_open, self._done)
        for start, stop in spans:
            if start < end:
                end = max(end, stop)
        passed = self._redacted(spans, end)
        self._keep(min(first_open, len(self._text) - _PASSED_PREFIX))
        if len(self._text) > 2 * MAX_LINE + self._longest_secret:  # a match without an end
            self._text, self._done, self._skips_line = "", 0, True
            passed += REDACTED
        return passed

    def flush(self) -> str:
        """Return the held text, redacted. Called at the end of the text."""
        return self._redacted(self._redactor.spans(self._text, self._done), len(self._text))

    @property
    def _longest_secret(self) -> int:
        return max(map(len, self._redactor.secrets), default=0)

    def _redacted(self, spans: list[Span], end: int) -> str:
        """Return the held text up to the position `end`, redacted, and mark it as returned.

        `end` must not be inside of one of the `spans`, which are the positions of secrets.
        """
        parts: list[str] = []
        position = self._done
        for start, stop in spans:
            if position < stop <= end:
                continues = start < position and self._ends_redacted
                parts += [self._text[position:start], "" if continues else REDACTED]
                self._ends_redacted, position = True, stop
        if position < end:
            parts.append(self._text[position:end])
            self._ends_redacted = False
        self._done = end
        return "".join(parts)

    def _keep(self, since: int) -> None:
        since = max(0, min(since, self._done))
        self._text, self._done = self._text[since:], self._done - since

    def _skip_line(self) -> bool:
        """Drop held text up to the end of a line whose rest is redacted. Return whether the line has ended."""
        ends = _LINE_END.search(self._text)
        self._text = "" if ends is None else self._text[ends.start() :]
        self._skips_line = ends is None
        return ends is not None

    def _first_open(self) -> int:
        """Return the position of the first secret that may still be incomplete; the text's length if there is none."""
        text = self._text
        key = api_keys.KEY_BEGINNING.search(text, max(0, len(text) - api_keys.LENGTH))
        positions = [
            len(text) if key is None else key.start(),
            *(_begin_of(secret, text) for secret in self._redactor.secrets),
        ]
        return min(*positions, self._open_line() if self._redactor.needs_complete_texts else len(text))

    def _open_line(self) -> int:
        """Return the position from which text is held for patterns: the start of the last line, later in a long one."""
        line = max(self._text.rfind("\n"), self._text.rfind("\r")) + 1
        if len(self._text) - line <= MAX_LINE:
            return line
        cut = max(self._done, len(self._text) - _OVERLAP)
        return min([cut, *(start for start, end in self._redactor.matches(self._text, self._done) if end > cut)])


def _begin_of(secret: str, text: str) -> int:
    """Return the position at which the beginning of this secret ends the text; the text's length if it does not."""
    prefix = secret[:PREFIX_LENGTH]
    start = text.find(prefix, max(0, len(text) - len(secret) + 1))
    while start >= 0 and not secret.startswith(text[start:]):
        start = text.find(prefix, start + 1)
    return len(text) if start < 0 else start
