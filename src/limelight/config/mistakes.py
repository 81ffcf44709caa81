"""What is wrong with a configuration, in one line that says where, and which word was probably meant.

Pure. `loading` calls it for every value, wherever that comes from.
"""

import difflib
from typing import Any, cast

import msgspec

from limelight.config.schema import AGENT, Origin, Setting, all_settings
from limelight.errors import SetupError

Table = dict[str, Any]


def checked(value: Any, setting: Setting, where: str, *, strict: bool) -> Any:
    """The value as the setting wants it. `where` says where it comes from, for who has to correct it."""
    try:
        return msgspec.convert(value, setting.type, strict=strict)
    except msgspec.ValidationError as error:
        told = str(error).partition(" - at ")[0].replace("Expected", "expected", 1)
        raise SetupError(f"{where} is wrong: {told}") from error


def checked_file(values: Table, origin: Origin) -> Table:
    """The content of a file, if all of it is right."""
    for section, content in values.items():
        if section not in {name.partition(".")[0] for name in _known()}:
            known = [name.partition(".")[0] for name in _known()]
            raise _wrong(origin, (section,), f"there is no section [{section}]{_nearest(section, known)}")
        if section == "agents":
            for name, table in _table(content, origin, (section,)).items():
                _check_table(table, origin, (section, name), AGENT)
        else:
            _check_table(content, origin, (section,), section)
    return values


def _check_table(content: Any, origin: Origin, path: tuple[str, ...], section: str) -> None:
    settings = _known()[section]
    for key, value in _table(content, origin, path).items():
        if key not in settings:
            hint = _elsewhere(key, section) or _nearest(key, list(settings))
            raise _wrong(origin, (*path, key), f"[{'.'.join(path)}] has no setting {key!r}{hint}")
        where = f"{origin.place(*path, key)}[{'.'.join(path)}] {key}"
        checked(value, settings[key], where, strict=True)


def _table(content: Any, origin: Origin, path: tuple[str, ...]) -> Table:
    if not isinstance(content, dict):
        raise _wrong(origin, path, f"[{'.'.join(path)}] has to be a table")
    return cast("Table", content)


def _wrong(origin: Origin, path: tuple[str, ...], told: str) -> SetupError:
    return SetupError(f"{origin.place(*path)}{told}")


def _known() -> dict[str, dict[str, Setting]]:
    known: dict[str, dict[str, Setting]] = {}
    for setting in all_settings():
        known.setdefault(setting.section, {})[setting.key] = setting
    return known


def _elsewhere(key: str, section: str) -> str:
    places = [name for name, settings in _known().items() if name != section and key in settings]
    return f"; that belongs into [{places[0]}]" if places else ""


def _nearest(word: str, known: list[str]) -> str:
    close = difflib.get_close_matches(word, known, n=1)
    return f"; did you mean {close[0]!r}?" if close else f"; there are: {', '.join(sorted(known))}"
