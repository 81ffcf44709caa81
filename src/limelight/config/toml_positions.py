"""On which line of a TOML file a table or a key stands, as `tomllib` does not tell.

Pure. It reads tables, dotted and quoted keys and inline tables, and skips values. The file has been accepted by
`tomllib` before, so it checks nothing; whatever it does not understand has no line, which is better than a wrong one.
"""

import re
import tomllib
from collections.abc import Callable

BLANK = re.compile(r"(?:[ \t\r\n]|#[^\n]*)*")
KEY = re.compile(r"""[A-Za-z0-9_-]+|"(?:[^"\\\n]|\\.)*"|'[^'\n]*'""")
TEXT = re.compile(
    r'"""(?:[^\\]|\\.)*?"""(?:"{0,2})'
    r"|'''.*?'''(?:'{0,2})"
    r'|"(?:[^"\\\n]|\\.)*"'
    r"|'[^'\n]*'",
    re.DOTALL,
)
PLAIN = re.compile(r"""[^,\]}#\n"']+""")
"""A number, a date, true or false."""
DOT = re.compile(r"[ \t]*\.[ \t]*")

Path = tuple[str, ...]


def lines_of(text: str) -> dict[Path, int]:
    """The line on which each table and key is first named. Empty if the text is not understood."""
    reading = _Reading(text)
    try:
        reading.document()
    except ValueError:
        return {}
    return reading.found


class _Reading:
    """One pass over the text; `found` is what it has seen."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self.found: dict[Path, int] = {}

    def document(self) -> None:
        table: Path = ()
        while self._skip(BLANK) < len(self._text):
            if self._text[self._at] == "[":
                self._at += 2 if self._text.startswith("[[", self._at) else 1
                table = self._keys(())
                self._expect("]")
                self._at += self._text.startswith("]", self._at)
            else:
                self._pair(table)

    def _pair(self, table: Path) -> None:
        key = self._keys(table)
        self._expect("=")
        self._value(key)

    def _keys(self, table: Path) -> Path:
        """A dotted key. Each of its parts is named here, if not before."""
        self._skip(BLANK)
        line = self._text.count("\n", 0, self._at) + 1
        path = table
        while True:
            written = KEY.match(self._text, self._at)
            if written is None:
                raise ValueError("no key")
            self._at = written.end()
            path = (*path, _read(written[0]))
            self.found.setdefault(path, line)
            dot = DOT.match(self._text, self._at)
            if dot is None:
                return path
            self._at = dot.end()

    def _value(self, path: Path) -> None:
        self._skip(BLANK)
        match self._text[self._at : self._at + 1]:
            case "{":
                self._inside("}", lambda: self._pair(path))
            case "[":
                self._inside("]", lambda: self._value(()))
            case _:
                self._skip(TEXT if TEXT.match(self._text, self._at) else PLAIN, needed=True)

    def _inside(self, end: str, take: Callable[[], None]) -> None:
        self._at += 1
        while True:
            self._skip(BLANK)
            if self._text.startswith(end, self._at):
                self._at += 1
                return
            if self._text.startswith(",", self._at):
                self._at += 1
                continue
            take()

    def _skip(self, pattern: re.Pattern[str], *, needed: bool = False) -> int:
        found = pattern.match(self._text, self._at)
        if found is None or (needed and not found[0]):
            raise ValueError("not understood")
        self._at = found.end()
        return self._at

    def _expect(self, mark: str) -> None:
        self._skip(BLANK)
        if not self._text.startswith(mark, self._at):
            raise ValueError(f"no {mark}")
        self._at += 1


def _read(key: str) -> str:
    """A key as TOML means it: without its quotes, escapes resolved."""
    return str(tomllib.loads(f"k = {key}")["k"]) if key[0] in "\"'" else key
