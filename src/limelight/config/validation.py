"""Validates settings, and reports each mistake in one line: where it is, what is wrong, and what was probably meant.

Pure. `load` calls it for every value of the file, the environment and the command line.
"""

import difflib
import re
from collections.abc import Iterable, Iterator
from typing import Any, Literal, cast, get_args, get_origin

import msgspec

from limelight.config.schema import AGENT, Setting, all_settings
from limelight.config.setting_locations import Origin, Path
from limelight.errors import SetupError

Table = dict[str, Any]

AGENT_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
AGENT_NAME_RULE = "1 to 64 letters, digits, '.', '_' or '-', a letter or digit first, as names are parts of addresses"
SIMILARITY = 0.7
"""Minimum similarity (0 to 1) of a suggested word to the unknown one, so that only likely misspellings match."""
TYPE_NAMES = {
    "int": "a whole number",
    "float": "a number",
    "str": "a text in quotes",
    "bool": "true or false",
    "array": "a list",
    "object": "a table",
}
BOUNDS = {"<=": "of at most", ">=": "of at least"}
MSGSPEC_ERROR = re.compile(
    r"Expected `(?P<type>\w+)(?: \| null)?`"
    r"(?: (?P<operator>[<>]=) (?P<bound>[\d.e+-]+))?(?:, got `(?P<got>\w+)`)?"
    r"(?: - at `\$\[(?P<index>\d+)\]`)?"
)
VALUE_CHARS = 40
SECRET = object()
"""The text that replaces a secret value in error messages."""


def check_value(value: Any, setting: Setting, place: str) -> Any:
    """Convert a text from the environment or the command line to the type of its setting. Raises SetupError.

    The items of a list are separated by commas.
    """
    if isinstance(setting.default, list) and isinstance(value, str):
        value = [item.strip() for item in value.split(",") if item.strip()]
    try:
        return msgspec.convert(value, setting.type, strict=False)
    except msgspec.ValidationError as error:
        raise SetupError(f"{place} is wrong: {_describe(str(error), value, setting, quotes=False)}") from error


def check_file(values: Table, origin: Origin) -> Table:
    """Validate the content of a configuration file and return it. Raises SetupError with a line for each mistake."""
    mistakes = list(_file_mistakes(values, origin))
    if mistakes:
        raise SetupError("\n".join(mistakes))
    return values


def is_agent_name(word: str) -> bool:
    """Whether an agent can have this name."""
    return AGENT_NAME.fullmatch(word) is not None


def suggestion(word: str, known: Iterable[str], otherwise: str = "") -> str:
    """Return the end of an error message about an unknown word, which suggests the most similar known word.

    If no known word is similar, `otherwise` is returned, or the list of all known words.
    """
    by_lower = {name.lower(): name for name in known}
    close = difflib.get_close_matches(word.lower(), list(by_lower), n=1, cutoff=SIMILARITY)
    if close:
        return f"; did you mean {by_lower[close[0]]!r}?"
    return otherwise or f"; there are: {', '.join(sorted(by_lower.values()))}"


def _file_mistakes(values: Table, origin: Origin) -> Iterator[str]:
    known = list(dict.fromkeys(name.partition(".")[0] for name in _known_settings()))
    for section, content in values.items():
        if section == "sources":
            yield from _source_mistakes(content, origin)
        elif section not in known:
            yield f"{origin.place(section)}there is no section [{section}]{suggestion(section, [*known, 'sources'])}"
        elif section != "agents":
            yield from _table_mistakes(content, origin, (section,), section)
        elif isinstance(content, dict):
            for name, table in cast("Table", content).items():
                yield from _agent_mistakes(name, table, origin)
        else:
            yield _not_a_table(origin, (section,))


def _agent_mistakes(name: str, table: Any, origin: Origin) -> Iterator[str]:
    if not is_agent_name(name):
        yield f"{origin.place('agents', name)}{name!r} cannot be the name of an agent: {AGENT_NAME_RULE}"
    yield from _table_mistakes(table, origin, ("agents", name), AGENT)


def _source_mistakes(content: Any, origin: Origin) -> Iterator[str]:
    if not isinstance(content, dict):
        yield _not_a_table(origin, ("sources",))
        return
    for name, target in cast("Table", content).items():
        if not isinstance(target, str) or not target:
            wrong = "expected a target in quotes, as in 'my_source.py:MySource'"
            yield f"{origin.place('sources', name)}[sources] {name} is wrong: {wrong}"


def _table_mistakes(content: Any, origin: Origin, path: Path, section: str) -> Iterator[str]:
    if not isinstance(content, dict):
        yield _not_a_table(origin, path)
        return
    settings = _known_settings()[section]
    for key, value in cast("Table", content).items():
        if key in settings:
            yield from _setting_mistakes(value, settings[key], origin, (*path, key))
        else:
            hint = _other_section(key, section) or suggestion(key, list(settings))
            yield f"{origin.place(*path, key)}[{'.'.join(path)}] has no setting {key!r}{hint}"


def _setting_mistakes(value: Any, setting: Setting, origin: Origin, path: Path) -> Iterator[str]:
    if isinstance(setting.default, dict) and isinstance(value, dict):  # to report the line of an entry
        for key, entry in cast("Table", value).items():
            yield from _value_mistakes({key: entry}, entry, setting, origin, (*path, key))
    else:
        yield from _value_mistakes(value, SECRET if setting.section == "auth" else value, setting, origin, path)


def _value_mistakes(value: Any, shown: Any, setting: Setting, origin: Origin, path: Path) -> Iterator[str]:
    try:
        msgspec.convert(value, setting.type)
    except msgspec.ValidationError as error:
        table = path[: 2 if setting.section == AGENT else 1]
        key = ".".join(path[len(table) :])
        yield f"{origin.place(*path)}[{'.'.join(table)}] {key} is wrong: {_describe(str(error), shown, setting)}"


def _not_a_table(origin: Origin, path: Path) -> str:
    return f"{origin.place(*path)}[{'.'.join(path)}] has to be a table"


def _known_settings() -> dict[str, dict[str, Setting]]:
    """Return the settings that a configuration file may contain, by section and key."""
    known: dict[str, dict[str, Setting]] = {}
    for setting in all_settings():
        known.setdefault(setting.section, {})[setting.key] = setting
    return known


def _other_section(key: str, section: str) -> str:
    """Return a hint for an error message if another section has a setting of this name; "" otherwise."""
    sections = [name for name, settings in _known_settings().items() if name != section and key in settings]
    return f"; it belongs in [{sections[0]}]" if sections else ""


def _describe(error: str, value: Any, setting: Setting, *, quotes: bool = True) -> str:
    """Rewrite an error of msgspec in plain words. `quotes` is true where texts are written in quotes, as in TOML."""
    found = MSGSPEC_ERROR.match(error)
    if error.startswith("Expected `bool | array`"):
        return f"expected true, false or a list, got {_shown(value, 'str')}"
    if error.startswith("Invalid enum value") and (words := _words(setting.type)):
        return f"expected {' or '.join((', '.join(words[:-1]), words[-1]))}, got {_shown(value, 'str')}"
    if found is None:
        return error[:1].lower() + error[1:]
    name = TYPE_NAMES.get(found["type"], found["type"])
    expected = name if quotes else name.removesuffix(" in quotes")
    bound = f" {BOUNDS[found['operator']]} {found['bound'].removesuffix('.0')}" if found["operator"] else ""
    if found["index"] is not None and isinstance(value, list):
        item = cast("list[Any]", value)[int(found["index"])]
        return f"expected {expected}{bound} in the list, got {_shown(item, found['got'])}"
    return f"expected {expected}{bound}, got {_shown(value, found['got'])}"


def _words(type_: Any) -> tuple[str, ...]:
    """Return the words of which a setting accepts one; () if it accepts other values."""
    accepted = get_args(type_)[0]
    return get_args(accepted) if get_origin(accepted) is Literal else ()


def _shown(value: Any, type_name: str | None) -> str:
    """Format a value for an error message: a boolean, number or shortened text itself, otherwise the type."""
    match value:
        case bool():
            return "true" if value else "false"
        case int() | float():
            return str(value)
        case str():
            return f'the text "{value if len(value) <= VALUE_CHARS else value[:VALUE_CHARS] + "…"}"'
        case _:
            return TYPE_NAMES.get(type_name or "", "something else")
