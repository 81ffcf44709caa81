"""What is wrong with a configuration: a line for each mistake that says where, and which word was probably meant.

Pure. `loading` calls it for every value, wherever that comes from; `plainly` has the words for types.
"""

from collections.abc import Iterator
from typing import Any, cast

import msgspec

from limelight.config.error_text import SECRET, told_plainly
from limelight.config.schema import AGENT, Origin, Setting, all_settings
from limelight.config.suggestions import NAME_RULE, is_name, nearest
from limelight.errors import SetupError

Table = dict[str, Any]


def checked(value: Any, setting: Setting, where: str) -> Any:
    """A value from the environment or the command line, which says all things as text, as the setting wants it."""
    try:
        return msgspec.convert(value, setting.type, strict=False)
    except msgspec.ValidationError as error:
        raise SetupError(f"{where} is wrong: {told_plainly(str(error), value, quotes=False)}") from error


def checked_file(values: Table, origin: Origin) -> Table:
    """The content of a file, if all of it is right; otherwise all that is wrong, a line each."""
    mistakes = list(_mistakes(values, origin))
    if mistakes:
        raise SetupError("\n".join(mistakes))
    return values


def _mistakes(values: Table, origin: Origin) -> Iterator[str]:
    known = list(dict.fromkeys(name.partition(".")[0] for name in _known()))
    for section, content in values.items():
        if section not in known:
            yield f"{origin.place(section)}there is no section [{section}]{nearest(section, known)}"
        elif section != "agents":
            yield from _in_table(content, origin, (section,), section)
        elif isinstance(content, dict):
            for name, table in cast("Table", content).items():
                yield from _in_agent(name, table, origin)
        else:
            yield _no_table(origin, (section,))


def _in_agent(name: str, table: Any, origin: Origin) -> Iterator[str]:
    if not is_name(name):
        yield f"{origin.place('agents', name)}{name!r} cannot be the name of an agent: {NAME_RULE}"
    yield from _in_table(table, origin, ("agents", name), AGENT)


def _in_table(content: Any, origin: Origin, path: tuple[str, ...], section: str) -> Iterator[str]:
    if not isinstance(content, dict):
        yield _no_table(origin, path)
        return
    settings = _known()[section]
    for key, value in cast("Table", content).items():
        if key in settings:
            yield from _in_value(value, settings[key], origin, (*path, key))
        else:
            hint = _elsewhere(key, section) or nearest(key, list(settings))
            yield f"{origin.place(*path, key)}[{'.'.join(path)}] has no setting {key!r}{hint}"


def _in_value(value: Any, setting: Setting, origin: Origin, path: tuple[str, ...]) -> Iterator[str]:
    if isinstance(setting.default, dict) and isinstance(value, dict):  # each of its entries has a line
        for key, one in cast("Table", value).items():
            yield from _in_part({key: one}, one, setting, origin, (*path, key))
    elif setting.section == "auth":
        yield from _in_part(value, SECRET, setting, origin, path)
    else:
        yield from _in_part(value, cast("object", value), setting, origin, path)


def _in_part(value: Any, shown: object, setting: Setting, origin: Origin, path: tuple[str, ...]) -> Iterator[str]:
    try:
        msgspec.convert(value, setting.type)
    except msgspec.ValidationError as error:
        table = path[: 2 if setting.section == AGENT else 1]
        key = ".".join(path[len(table) :])
        yield f"{origin.place(*path)}[{'.'.join(table)}] {key} is wrong: {told_plainly(str(error), shown)}"


def _no_table(origin: Origin, path: tuple[str, ...]) -> str:
    return f"{origin.place(*path)}[{'.'.join(path)}] has to be a table"


def _known() -> dict[str, dict[str, Setting]]:
    known: dict[str, dict[str, Setting]] = {}
    for setting in all_settings():
        known.setdefault(setting.section, {})[setting.key] = setting
    return known


def _elsewhere(key: str, section: str) -> str:
    places = [name for name, settings in _known().items() if name != section and key in settings]
    return f"; that belongs into [{places[0]}]" if places else ""
