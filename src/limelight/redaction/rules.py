"""Hides what may not be told or kept: secrets that the server knows, and whatever else somebody has a pattern for.

Pure. What agents' tools get and return goes through it before it is stored, and so does every line of the log.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from functools import cached_property
from itertools import zip_longest
from typing import Any, cast
from urllib.parse import unquote

import msgspec

from limelight.auth import api_keys

HIDDEN = "[redacted]"
SECRET_NAMES = ("*_API_KEY", "*_TOKEN", "*_SECRET", "*_PASSWORD", "*_SECRET_KEY", "*_ACCESS_KEY")
HEADER_NAMES = "OTEL_*_HEADERS"
"""Variables with headers for collectors of traces, as `name=value,name=value`: the values are secrets."""
HEAD = 4
"""So much of the beginning of a secret is taken for one that may follow."""
MIN_SECRET = 12
"""Shorter values are no secrets but words, and would be found everywhere."""

Span = tuple[int, int]


class Hiding:
    """What is hidden. `patterns` are of any text, `fields` are names in JSON, with `*` for anything."""

    def __init__(
        self, patterns: Iterable[re.Pattern[str]] = (), fields: Iterable[str] = (), secrets: Iterable[str] = ()
    ) -> None:
        self.patterns = tuple(patterns)
        self._fields = tuple(field.lower() for field in fields)
        known = {form for secret in secrets if len(secret) >= MIN_SECRET for form in (secret, _escaped(secret))}
        self.secrets = tuple(sorted(known))

    @cached_property
    def own(self) -> "Hiding | None":
        """Of the server's secrets alone: what agents say is not looked through for anything else. None without any."""
        return Hiding(secrets=self.secrets) if self.secrets else None

    @cached_property
    def heads(self) -> re.Pattern[str]:
        """Finds where a secret may begin, in one go: hardly a text has such a place."""
        heads = {f"{api_keys.PREFIX}_", *(secret[:HEAD] for secret in self.secrets)}
        return re.compile("|".join(map(re.escape, sorted(heads))))

    @property
    def needs_whole_texts(self) -> bool:
        """Whether it takes more than a piece to see what is to be hidden: a pattern may match what is not there yet."""
        return bool(self.patterns or self._fields)

    def text(self, text: str) -> str:
        said, at = "", 0
        for start, end in self.spans(text):
            said, at = said + text[at:start] + HIDDEN, end
        return said + text[at:]

    def spans(self, text: str, since: int = 0) -> list[Span]:
        """Where something is hidden, in order; what overlaps is one. Patterns see only what comes after `since`."""
        found = [span for secret in self.secrets for span in _places(secret, text)]
        if api_keys.PREFIX in text:
            found += [match.span() for match in api_keys.KEY.finditer(text)]
        return _joined([*found, *self.matches(text, since)])

    def matches(self, text: str, since: int = 0) -> Iterator[Span]:
        """Where the patterns match what comes after `since`."""
        text = text[since:] if since else text
        for pattern in self.patterns:
            for match in pattern.finditer(text):
                if match.end() > match.start():
                    yield match.start() + since, match.end() + since

    def value(self, value: Any) -> Any:
        """A JSON value: its texts, and its fields by their names. JSON that is written as text counts too."""
        match value:
            case str():
                return self.text(self._in_written(value) if self._fields else value)
            case dict():
                fields = cast("dict[Any, Any]", value).items()
                return {self.value(name): self.field(name, one) for name, one in fields}
            case list() | tuple():
                return [self.value(one) for one in cast("Sequence[Any]", value)]
            case int() | float() if not isinstance(value, bool) and self.patterns:
                said = str(value)
                return value if (hidden := self.text(said)) == said else hidden
            case _:
                return value

    def field(self, name: Any, value: Any) -> Any:
        """What is shown as the value of a field."""
        named = str(name).lower()
        return HIDDEN if any(fnmatchcase(named, field) for field in self._fields) else self.value(value)

    def _in_written(self, text: str) -> str:
        if not text.lstrip().startswith(("{", "[")):
            return text
        try:
            written = msgspec.json.decode(text)
        except (msgspec.DecodeError, RecursionError):
            return text
        hidden = self.value(written)
        return text if hidden == written else msgspec.json.encode(hidden).decode()


NOTHING_HIDDEN = Hiding()
"""But for keys of a server, which nobody wants to see."""


def restored(edited: Any, original: Any, hiding: Hiding) -> Any:
    """What a person sends back who was shown `original` with something hidden: where they left that, what it hides."""
    if edited == original or edited == hiding.value(original):
        return original
    if isinstance(edited, list) and isinstance(original, list):
        pairs = zip_longest(cast("list[Any]", edited), cast("list[Any]", original)[: len(cast("list[Any]", edited))])
        return [restored(one, before, hiding) for one, before in pairs]
    if not isinstance(edited, dict) or not isinstance(original, dict):
        return cast("Any", edited)
    before = cast("dict[str, Any]", original)
    names = {hiding.value(name): name for name in before} | {name: name for name in before}
    after: dict[str, Any] = {}
    for shown, value in cast("dict[str, Any]", edited).items():
        name = names.get(shown)
        if name is None:
            after[shown] = value
        else:
            is_left = value == hiding.field(name, before[name])
            after[name] = before[name] if is_left else restored(value, before[name], hiding)
    return after


def is_hidden_in(value: Any) -> bool:
    """Whether something in a value stands for what was hidden."""
    return HIDDEN.encode() in msgspec.json.encode(value)


def keeps_placeholders(edited: Any, shown: Any) -> bool:
    """Whether each text with a placeholder in `edited` is unchanged from `shown`, so that it can be restored."""
    if edited == shown:
        return True
    if isinstance(edited, list) and isinstance(shown, list):
        pairs = zip_longest(cast("list[Any]", edited), cast("list[Any]", shown)[: len(cast("list[Any]", edited))])
        return all(keeps_placeholders(one, before) for one, before in pairs)
    if isinstance(edited, dict) and isinstance(shown, dict):
        before = cast("dict[str, Any]", shown)
        return all(
            keeps_placeholders(value, before[name]) if name in before else not is_hidden_in({name: value})
            for name, value in cast("dict[str, Any]", edited).items()
        )
    return not is_hidden_in(edited)


def _places(secret: str, text: str) -> Iterator[Span]:
    at = text.find(secret)
    while at >= 0:
        yield at, at + len(secret)
        at = text.find(secret, at + 1)


def _joined(spans: list[Span]) -> list[Span]:
    joined: list[Span] = []
    for start, end in sorted(spans):
        if joined and start < joined[-1][1]:
            start, last = joined.pop()
            end = max(end, last)
        joined.append((start, end))
    return joined


def _escaped(text: str) -> str:
    """As it stands in JSON."""
    return msgspec.json.encode(text).decode()[1:-1]


def secrets_in(environ: Mapping[str, str]) -> list[str]:
    """The values of variables that are called like secrets, and of the headers that some variables hold."""
    secrets = [
        value for name, value in environ.items() if any(fnmatchcase(name.upper(), pattern) for pattern in SECRET_NAMES)
    ]
    sent = [value for name, value in environ.items() if fnmatchcase(name.upper(), HEADER_NAMES)]
    headers = [header.partition("=")[2].strip() for value in sent for header in value.split(",")]
    return [*secrets, *headers, *(unquote(header) for header in headers if "%" in header)]
