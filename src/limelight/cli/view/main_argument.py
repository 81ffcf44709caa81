"""The argument that matters: of all that a tool is called with, the one that tells a person what it is about. Pure."""

from typing import Any, cast

from limelight.cli.view.sanitize import one_line
from limelight.dialects.base import text_of

TELLING = (
    "path",
    "file_path",
    "file",
    "filename",
    "name",
    "query",
    "q",
    "question",
    "pattern",
    "url",
    "command",
    "code",
    "expression",
    "description",
    "task",
    "title",
    "text",
    "content",
)
WIDTH = 60


def telling_argument(args: dict[str, Any] | str | None) -> str:
    """A short text, or "" if there is nothing to tell."""
    if not args:
        return ""
    if isinstance(args, str):
        return one_line(args, WIDTH)
    given = {key: value for key, value in args.items() if value not in (None, "", [], {})}
    value = next((given[key] for key in TELLING if key in given), next(iter(given.values()), ""))
    if isinstance(value, list):
        value = _listed(cast("list[Any]", value))
    return one_line(text_of(value), WIDTH)


def _listed(items: list[Any]) -> str:
    """Words, or objects such as the items of a plan, by what matters in each."""
    if any(isinstance(item, dict) for item in items):
        return ", ".join(telling_argument(item) if isinstance(item, dict) else text_of(item) for item in items)  # pyright: ignore[reportUnknownArgumentType]
    return " ".join(text_of(item) for item in items)
