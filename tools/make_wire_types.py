"""Generates the files that the page shares with the server: `wire/events.ts` and `log/v2Components.json` in `web/src`.

`make types` calls it, and a test fails if the files are stale. They are formatted as Biome formats them.
"""

import ast
import inspect
import json
import types
from pathlib import Path
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import msgspec

from limelight import events
from limelight.dialects.v2.message_schema import CODE_PANE, PANES
from limelight.display_fields import PYTHON_KEYS

WEB = Path(__file__).parents[1] / "web" / "src"
EVENTS_FILE = WEB / "wire" / "events.ts"
COMPONENTS_FILE = WEB / "log" / "v2Components.json"
WIDTH = 120

HEAD = """\
// `make types` generates this file from src/limelight/events.py. Do not edit it.
// A field that is absent has its default: "", 0, false or nothing, unless its comment says otherwise.
"""
JSON = """\
/** Any JSON value, such as an argument or a result of a tool. */
export type JsonValue = JsonObject | readonly JsonValue[] | string | number | boolean | null;

export interface JsonObject {
  readonly [key: string]: JsonValue;
}
"""
ALIASES = ("TodoStatus", "OutputStream", "Decision", "RequestedDecision", "Outcome")
PARTS: tuple[type[msgspec.Struct], ...] = (events.Todo, events.Attachment, events.SourceLink)
PLAIN: dict[Any, str] = {str: "string", int: "number", float: "number", bool: "boolean", type(None): "null"}


def events_text() -> str:
    """Return the text of `events.ts`: the TypeScript types of all events."""
    aliases = [_alias(name, [json.dumps(value) for value in get_args(getattr(events, name))]) for name in ALIASES]
    unions = [
        _alias("AnyEvent", [kind.__name__ for kind in events.EVENT_TYPES], "Any event of a log."),
        _alias("Terminal", [kind.__name__ for kind in events.TERMINAL_TYPES], "An event that ends a run."),
        'export type EventKind = AnyEvent["kind"];\n',
    ]
    interfaces = [_interface(struct) for struct in (*PARTS, *events.EVENT_TYPES)]
    record = _interface(events.Record).replace("interface Record ", "interface LogRecord ")
    return "\n".join([HEAD, JSON, *aliases, *interfaces, *unions, record])


def components_text() -> str:
    """Return the text of `v2Components.json`: the pane of each message type of the Web API v2."""
    table = {
        "panes": PANES,
        "code_pane": CODE_PANE,
        "code_keys": list(PYTHON_KEYS),
    }
    lines = [f"  {json.dumps(key)}: {_one_line_list(value)}" for key, value in table.items()]
    return "{\n" + ",\n".join(lines) + "\n}\n"


def _one_line_list(value: Any) -> str:
    """Format JSON like Biome: a list on one line, an object with one line for each key."""
    return json.dumps(value) if isinstance(value, list) else json.dumps(value, indent=2).replace("\n", "\n  ")


def _alias(name: str, members: list[str], description: str = "") -> str:
    line = f"export type {name} = {' | '.join(members)};\n"
    if len(line) > WIDTH:
        line = f"export type {name} =\n" + "\n".join(f"  | {member}" for member in members) + ";\n"
    return _comment(description) + line


def _interface(struct: type[msgspec.Struct]) -> str:
    config = struct.__struct_config__
    notes = _field_notes(struct)
    hints = get_type_hints(struct)
    lines = [f"  readonly kind: {json.dumps(config.tag)};\n"] if config.tag_field else []
    for field in msgspec.structs.fields(struct):
        omitted = not field.required and config.omit_defaults
        description = " ".join(filter(None, [notes.get(field.name, ""), _default_note(field) if omitted else ""]))
        ts_type = _ts_type(hints[field.name], omit_null=omitted and field.default is None)
        lines.append(_comment(description, "  ") + f"  readonly {field.name}{'?' if omitted else ''}: {ts_type};\n")
    description = inspect.getdoc(struct) or ""
    return _comment(description) + f"export interface {struct.__name__} {{\n" + "".join(lines) + "}\n"


def _default_note(field: msgspec.structs.FieldInfo) -> str:
    """Return a note on the default that an absent field has; "" if the default is empty."""
    return f"Absent: `{json.dumps(field.default)}`." if field.default else ""


def _ts_type(hint: Any, *, omit_null: bool = False) -> str:
    """Return the TypeScript type for a Python type. `omit_null` leaves out null, for fields that are absent instead."""
    if hint == events.JsonValue:
        return "JsonValue"
    if hint == events.AnyEvent:
        return "AnyEvent"
    origin, args = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType):
        return " | ".join(_ts_type(arg) for arg in args if not (omit_null and arg is type(None)))
    if origin is Literal:
        return next((name for name in ALIASES if getattr(events, name) == hint), " | ".join(map(json.dumps, args)))
    if origin is tuple:
        return f"readonly {_ts_type(args[0])}[]"
    if origin is dict:
        return "JsonObject"
    return PLAIN[hint] if hint in PLAIN else str(hint.__name__)


def _field_notes(struct: type[msgspec.Struct]) -> dict[str, str]:
    """Return the docstrings of a struct's fields, by name."""
    body = ast.parse(inspect.getsource(struct)).body[0]
    assert isinstance(body, ast.ClassDef)
    notes: dict[str, str] = {}
    for field, below in zip(body.body, body.body[1:], strict=False):
        match field, below:
            case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(note))):
                notes[name] = note
            case _:
                pass
    return notes


def _comment(text: str, indent: str = "") -> str:
    if not text:
        return ""
    line = f"{indent}/** {text} */\n"
    if len(line) <= WIDTH and "\n" not in text:
        return line
    lines = "".join(f"{indent} * {line}".rstrip() + "\n" for line in text.splitlines())
    return f"{indent}/**\n{lines}{indent} */\n"


if __name__ == "__main__":
    for path, text in ((EVENTS_FILE, events_text()), (COMPONENTS_FILE, components_text())):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
