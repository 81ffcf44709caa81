"""What counts as a secret: values that the server knows, and patterns and field names from the settings.

A Redactor replaces secrets in texts and in JSON values. The engine applies it to events before they are stored
(`event_redactor.py`), the command line to each line of the server's log. Pure, except for `make_redactor`, which reads
the environment.
"""

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from functools import cached_property
from itertools import zip_longest
from typing import Any, cast
from urllib.parse import unquote

import msgspec

from limelight.auth import api_keys
from limelight.config import Settings
from limelight.config.env_file import file_variables
from limelight.errors import SetupError

REDACTED = "[redacted]"
"""The placeholder that replaces everything that is redacted."""
SECRET_VARIABLES = (
    *("*_API_KEY", "*_TOKEN", "*_SECRET", "*_SECRET_KEY", "*_ACCESS_KEY", "*_PRIVATE_KEY"),
    *("*PASSWORD", "*PASSWD", "*_PWD", "*_PAT"),
)
"""Name patterns of environment variables whose values are secrets. `PGPASSWORD` has no underscore; a PAT is a personal
access token."""
URL_AUTHORITY = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://(?P<authority>[^\s/?#\"'<>]+)")
"""Matches the beginning of a URL, up to its path."""
URL_CREDENTIALS = re.compile(r"(?<=://)[^\s/?#@:]*:[^\s/?#\"'<>]+(?=@)")
"""Matches user name and password in a URL."""
HEADER_VARIABLES = "OTEL_*_HEADERS"
"""Name pattern of variables with HTTP headers for trace collectors, `name=value,…`. The values are secrets."""
PREFIX_LENGTH = 4
"""Number of characters at the beginning of a secret that a text must contain before a StreamRedactor holds it back."""
MIN_SECRET_LENGTH = 12
"""Minimum length of a secret value. Shorter values may be ordinary words, so they are not redacted."""

_CREDENTIALS = re.compile(r"(?<=//)[^/@]*@")

Span = tuple[int, int]
"""The start and the end of a part of a text, as positions."""


class Redactor:
    """Replaces secrets, matches of patterns, JSON fields with certain names, and API keys of Limelight servers.

    `fields` are field names, in which `*` matches any characters.
    """

    def __init__(
        self, patterns: Iterable[re.Pattern[str]] = (), fields: Iterable[str] = (), secrets: Iterable[str] = ()
    ) -> None:
        self.patterns = tuple(patterns)
        self._fields = tuple(field.lower() for field in fields)
        known = {form for secret in secrets if len(secret) >= MIN_SECRET_LENGTH for form in (secret, _escaped(secret))}
        self.secrets = tuple(sorted(known))

    @cached_property
    def secrets_only(self) -> "Redactor | None":
        """A Redactor with only the secrets of this one, for texts of models; None if there are no secrets."""
        return Redactor(secrets=self.secrets) if self.secrets else None

    @cached_property
    def secret_prefixes(self) -> re.Pattern[str]:
        """A pattern that matches where a secret or an API key may begin: a fast test that few texts match."""
        prefixes = {f"{api_keys.PREFIX}_", *(secret[:PREFIX_LENGTH] for secret in self.secrets)}
        return re.compile("|".join(map(re.escape, sorted(prefixes))))

    @property
    def needs_complete_texts(self) -> bool:
        """Whether a text must be complete before it is redacted: a pattern or field may match text that comes later."""
        return bool(self.patterns or self._fields)

    def redact_text(self, text: str) -> str:
        """Return a text with its secret parts replaced."""
        redacted, position = "", 0
        for start, end in self.spans(text):
            redacted, position = redacted + text[position:start] + REDACTED, end
        return redacted + text[position:]

    def spans(self, text: str, since: int = 0) -> list[Span]:
        """Return the positions of secrets in a text, in order and merged. Patterns see only the text after `since`."""
        found = [span for secret in self.secrets for span in _find_all(secret, text)]
        if api_keys.PREFIX in text:
            found += [match.span() for match in api_keys.KEY.finditer(text)]
        return _merged([*found, *self.matches(text, since)])

    def matches(self, text: str, since: int = 0) -> Iterator[Span]:
        """Yield where patterns of the settings match in the text after the position `since`."""
        text = text[since:] if since else text
        for pattern in self.patterns:
            for match in pattern.finditer(text):
                if match.end() > match.start():
                    yield match.start() + since, match.end() + since

    def redact_value(self, value: Any) -> Any:
        """Return a JSON value in which secret texts and fields are replaced, also in texts that contain JSON."""
        match value:
            case str():
                return self.redact_text(self._redact_json_text(value) if self._fields else value)
            case dict():
                fields = cast("dict[Any, Any]", value).items()
                return {self.redact_value(name): self.redact_field(name, item) for name, item in fields}
            case list() | tuple():
                return [self.redact_value(item) for item in cast("Sequence[Any]", value)]
            case int() | float() if not isinstance(value, bool) and self.patterns:
                text = str(value)
                return value if (redacted := self.redact_text(text)) == text else redacted
            case _:
                return value

    def redact_field(self, name: Any, value: Any) -> Any:
        """Return the redacted value of a field. If the name of the field is secret, the whole value is replaced."""
        lower = str(name).lower()
        return REDACTED if any(fnmatchcase(lower, field) for field in self._fields) else self.redact_value(value)

    def _redact_json_text(self, text: str) -> str:
        if not text.lstrip().startswith(("{", "[")):
            return text
        try:
            value = msgspec.json.decode(text)
        except (msgspec.DecodeError, RecursionError):
            return text
        redacted = self.redact_value(value)
        return text if redacted == value else msgspec.json.encode(redacted).decode()


DEFAULT_REDACTOR = Redactor()
"""A Redactor that replaces only API keys of Limelight servers."""


def restore_redacted(edited: Any, original: Any, redactor: Redactor) -> Any:
    """Replace the placeholders that a person has left in an edited value by the original values."""
    if edited == original or edited == redactor.redact_value(original):
        return original
    if isinstance(edited, list) and isinstance(original, list):
        pairs = zip_longest(cast("list[Any]", edited), cast("list[Any]", original)[: len(cast("list[Any]", edited))])
        return [restore_redacted(item, before, redactor) for item, before in pairs]
    if not isinstance(edited, dict) or not isinstance(original, dict):
        return cast("Any", edited)
    before = cast("dict[str, Any]", original)
    names = {redactor.redact_value(name): name for name in before} | {name: name for name in before}
    after: dict[str, Any] = {}
    for shown, value in cast("dict[str, Any]", edited).items():
        name = names.get(shown)
        if name is None:
            after[shown] = value
        else:
            unchanged = value == redactor.redact_field(name, before[name])
            after[name] = before[name] if unchanged else restore_redacted(value, before[name], redactor)
    return after


def contains_redacted(value: Any) -> bool:
    """Whether a value contains the placeholder of a redacted part."""
    return REDACTED.encode() in msgspec.json.encode(value)


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
            keeps_placeholders(value, before[name]) if name in before else not contains_redacted({name: value})
            for name, value in cast("dict[str, Any]", edited).items()
        )
    return not contains_redacted(edited)


def _find_all(secret: str, text: str) -> Iterator[Span]:
    start = text.find(secret)
    while start >= 0:
        yield start, start + len(secret)
        start = text.find(secret, start + 1)


def _merged(spans: list[Span]) -> list[Span]:
    merged: list[Span] = []
    for start, end in sorted(spans):
        if merged and start < merged[-1][1]:
            start, last = merged.pop()
            end = max(end, last)
        merged.append((start, end))
    return merged


def _escaped(text: str) -> str:
    """Return a text with the escapes that a JSON string needs."""
    return msgspec.json.encode(text).decode()[1:-1]


def environment_secrets(environ: Mapping[str, str]) -> list[str]:
    """Return the secrets that environment variables contain.

    These are the values of variables whose names match SECRET_VARIABLES, passwords in URLs in any variable, and the
    HTTP headers in HEADER_VARIABLES.
    """
    secrets = [
        value
        for name, value in environ.items()
        if any(fnmatchcase(name.upper(), pattern) for pattern in SECRET_VARIABLES)
    ]
    urls = [part for value in environ.values() for part in url_secrets(value)]
    header_lists = [value for name, value in environ.items() if fnmatchcase(name.upper(), HEADER_VARIABLES)]
    headers = [header.partition("=")[2].strip() for value in header_lists for header in value.split(",")]
    return [*secrets, *urls, *headers, *(unquote(header) for header in headers if "%" in header)]


def url_secrets(text: str) -> Iterator[str]:
    """Yield the secrets in the URLs of a text: each password, alone, as `user:password@host`, and with the scheme.

    The longer forms are redacted even if the password is too short to be redacted alone.
    """
    for url in URL_AUTHORITY.finditer(text):
        credentials, _, _ = url["authority"].rpartition("@")
        _, _, password = credentials.partition(":")
        if password:
            yield from {password: None, unquote(password): None, url["authority"]: None, url[0]: None}


def make_redactor(settings: Settings, *patterns: re.Pattern[str]) -> Redactor:
    """Return the Redactor of a server: rules of the settings, additional patterns, and secrets of the environment.

    Secrets in environment files are included, even if the environment has other values for these variables. Raises
    SetupError for an invalid pattern.
    """
    all_patterns = list(patterns)
    for text in settings.store.redact:
        place = settings.origin.place("store", "redact")
        try:
            pattern = re.compile(text)
        except re.error as error:
            raise SetupError(f"{place}store.redact: {text!r} is not a regular expression: {error}") from error
        if pattern.search(""):
            raise SetupError(f"{place}store.redact: {text!r} matches everything, so nothing would be left")
        all_patterns.append(pattern)
    urls = (settings.tools.search_url, *(table.base_url for table in settings.agents.values()))
    in_urls = [secret for url in urls for secret in url_secrets(url)]
    in_files = [secret for variables in file_variables() for secret in environment_secrets(variables)]
    in_context = [secret for table in settings.agents.values() for secret in _context_secrets(table.context)]
    secrets = (settings.auth.api_key, *in_urls, *environment_secrets(os.environ), *in_files, *in_context)
    return Redactor(all_patterns, settings.store.redact_fields, secrets)


def _context_secrets(context: Mapping[str, Any]) -> list[str]:
    """Return the secrets among the context values of an agent's settings: those under names such as `api_key`."""
    texts = {f"CONTEXT_{name.upper()}": value for name, value in context.items() if isinstance(value, str)}
    return environment_secrets(texts)


def strip_credentials(url: str) -> str:
    """Return a URL without user name, password and query."""
    return _CREDENTIALS.sub("", url).partition("?")[0]
