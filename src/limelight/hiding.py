"""Hides what may not be told or kept: secrets that the server knows, and whatever else somebody has a pattern for.

Pure. What agents' tools get and return goes through it before it is stored, and so does every line of the log.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any, cast

import msgspec

HIDDEN = "[redacted]"
OWN_KEY = re.compile(r"lml_[a-z2-9]{8}_[a-z2-9]{52}")
"""Keys of this server, or of another one: see `access.keys`."""
SECRET_NAMES = ("*_API_KEY", "*_TOKEN", "*_SECRET", "*_PASSWORD", "*_SECRET_KEY", "*_ACCESS_KEY")
MIN_SECRET = 12
"""Shorter values are no secrets but words, and would be found everywhere."""


class Hiding:
    """What is hidden. `patterns` are of any text, `fields` are names in JSON, with `*` for anything."""

    def __init__(
        self, patterns: Iterable[re.Pattern[str]] = (), fields: Iterable[str] = (), secrets: Iterable[str] = ()
    ) -> None:
        self._patterns = tuple(patterns)
        self._fields = tuple(field.lower() for field in fields)
        self._secrets = tuple(sorted({s for s in secrets if len(s) >= MIN_SECRET}, key=len, reverse=True))
        self._any_secret = re.compile("|".join(map(re.escape, self._secrets)))
        self._beginnings = {secret[:end] for secret in self._secrets for end in range(1, len(secret))}

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

    def value(self, value: Any) -> Any:
        """A JSON value: its texts, and its fields by their names. JSON that is written as text counts too."""
        match value:
            case str():
                return self.text(self._in_written(value) if self._fields else value)
            case dict():
                return {name: self._of_field(name, one) for name, one in cast("dict[str, Any]", value).items()}
            case list() | tuple():
                return [self.value(one) for one in cast("Sequence[Any]", value)]
            case _:
                return value

    def first_open(self, text: str) -> int:
        """Where in a text that goes on something may begin that is to be hidden, and is not whole yet."""
        if self.needs_whole_texts:
            return max(text.rfind("\n"), text.rfind("\r")) + 1
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
    if not isinstance(edited, dict) or not isinstance(original, dict):
        return cast("Any", edited)
    before = cast("dict[str, Any]", original)
    shown = cast("dict[str, Any]", hiding.value(before))
    after: dict[str, Any] = {}
    for name, value in cast("dict[str, Any]", edited).items():
        is_left = name in before and value == shown[name]
        after[name] = before[name] if is_left else restored(value, before.get(name), hiding)
    return after


def secrets_in(environ: Mapping[str, str]) -> list[str]:
    """The values of variables that are called like secrets."""
    return [
        value for name, value in environ.items() if any(fnmatchcase(name.upper(), pattern) for pattern in SECRET_NAMES)
    ]
