"""Hides what may not be told or kept: secrets that the server knows, and whatever else somebody has a pattern for.

Pure. What agents' tools get and return goes through it before it is stored, and so does every line of the log.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from itertools import zip_longest
from typing import Any, cast

import msgspec

HIDDEN = "[redacted]"
OWN_KEY = re.compile(r"lml_[a-z2-9]{8}_[a-z2-9]{52}")
"""Keys of this server, or of another one: see `access.keys`."""
SECRET_NAMES = ("*_API_KEY", "*_TOKEN", "*_SECRET", "*_PASSWORD", "*_SECRET_KEY", "*_ACCESS_KEY")
MIN_SECRET = 12
"""Shorter values are no secrets but words, and would be found everywhere."""


_BEGINS_KEY = re.compile(r"(?:lml_[a-z2-9]{0,8}|(?:lml)?_[a-z2-9]{8}_[a-z2-9]{0,51})\Z")
_REST_OF_KEY = re.compile(r"_[a-z2-9]{8}_[a-z2-9]{52}")
_TOLD = 3
"""So much of the beginning of a secret may be told before the rest is noticed: or else every word that ends like one
begins would be held back."""
_OVERLAP = 1024
"""What a pattern may match across the end of a line that is too long to be held back."""


class Hiding:
    """What is hidden. `patterns` are of any text, `fields` are names in JSON, with `*` for anything."""

    def __init__(
        self, patterns: Iterable[re.Pattern[str]] = (), fields: Iterable[str] = (), secrets: Iterable[str] = ()
    ) -> None:
        self._patterns = tuple(patterns)
        self._fields = tuple(field.lower() for field in fields)
        known = {form for secret in secrets if len(secret) >= MIN_SECRET for form in (secret, _escaped(secret))}
        self._secrets = tuple(sorted(known, key=len, reverse=True))
        self._rests = tuple(secret[told:] for secret in self._secrets for told in range(1, _TOLD + 1))
        wholes = sorted((*self._secrets, *self._rests), key=len, reverse=True)
        self._any_secret = re.compile("|".join(map(re.escape, wholes)))
        self._beginnings = {whole[:end] for whole in wholes for end in range(_TOLD + 1, len(whole))}

    @property
    def needs_whole_texts(self) -> bool:
        """Whether it takes more than a piece to see what is to be hidden: a pattern may match what is not there yet."""
        return bool(self._patterns or self._fields)

    def text(self, text: str) -> str:
        for secret in self._secrets:
            if secret in text:
                text = text.replace(secret, HIDDEN)
        if "lml_" in text:
            text = OWN_KEY.sub(HIDDEN, text)
        for pattern in self._patterns:
            text = pattern.sub(HIDDEN, text)
        return text

    def piece(self, text: str) -> str:
        """A piece of a text, before which the beginning of something may have been told."""
        text = self.text(text)
        for rest in self._rests:
            if rest in text:
                text = text.replace(rest, HIDDEN)
        return _REST_OF_KEY.sub(HIDDEN, text) if "_" in text else text

    def value(self, value: Any) -> Any:
        """A JSON value: its texts, and its fields by their names. JSON that is written as text counts too."""
        match value:
            case str():
                return self.text(self._in_written(value) if self._fields else value)
            case dict():
                fields = cast("dict[Any, Any]", value).items()
                return {self.value(name): self._of_field(name, one) for name, one in fields}
            case list() | tuple():
                return [self.value(one) for one in cast("Sequence[Any]", value)]
            case int() | float() if not isinstance(value, bool) and self._patterns:
                said = str(value)
                return value if (hidden := self.text(said)) == said else hidden
            case _:
                return value

    def first_open(self, text: str, most: int) -> int:
        """Where in a text that goes on something may begin that is to be hidden, and is not whole yet.

        If that would be more than `most` characters, only so much of it as something could well take.
        """
        if not self.needs_whole_texts:
            return self._first_beginning(text)
        line = max(text.rfind("\n"), text.rfind("\r")) + 1
        if len(text) - line <= most:
            return line
        end = len(text) - _OVERLAP
        spanning = (found.start() for one in self._patterns for found in one.finditer(text) if found.end() > end)
        return min(end, *spanning, end)

    def _first_beginning(self, text: str) -> int:
        key = _BEGINS_KEY.search(text, max(0, len(text) - 80))
        return min(self._first_secret(text), len(text) if key is None else key.start())

    def _first_secret(self, text: str) -> int:
        if not self._secrets:
            return len(text)
        insides = {at for found in self._any_secret.finditer(text) for at in range(found.start() + 1, found.end())}
        starts = range(max(0, len(text) - len(self._secrets[0]) + 1), len(text))
        return next((at for at in starts if at not in insides and text[at:] in self._beginnings), len(text))

    def _of_field(self, name: Any, value: Any) -> Any:
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
    shown = cast("dict[str, Any]", hiding.value(before))
    after: dict[str, Any] = {}
    for name, value in cast("dict[str, Any]", edited).items():
        is_left = name in before and value == shown[name]
        after[name] = before[name] if is_left else restored(value, before.get(name), hiding)
    return after


def is_hidden_in(value: Any) -> bool:
    """Whether something in a value stands for what was hidden."""
    return HIDDEN.encode() in msgspec.json.encode(value)


def _escaped(text: str) -> str:
    """As it stands in JSON."""
    return msgspec.json.encode(text).decode()[1:-1]


def secrets_in(environ: Mapping[str, str]) -> list[str]:
    """The values of variables that are called like secrets."""
    return [
        value for name, value in environ.items() if any(fnmatchcase(name.upper(), pattern) for pattern in SECRET_NAMES)
    ]
