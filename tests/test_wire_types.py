"""The generated types of the page are up to date with the events and panes of the server."""

import msgspec

from limelight.events import EVENT_TYPES, Record, RunStarted, Todo, kind_of
from tools import make_wire_types
from tools.make_wire_types import COMPONENTS_FILE, EVENTS_FILE, components_text, events_text


def test_generated_files_are_up_to_date() -> None:
    assert EVENTS_FILE.read_text(encoding="utf-8") == events_text(), "run `make types`"
    assert COMPONENTS_FILE.read_text(encoding="utf-8") == components_text(), "run `make types`"


def test_every_kind_has_an_interface_and_is_in_the_union() -> None:
    text = events_text()
    union = text.split("export type AnyEvent =")[1].split(";")[0]
    for event in EVENT_TYPES:
        interface = text.split(f"export interface {event.__name__} {{\n")[1].split("}\n")[0]
        assert f'readonly kind: "{kind_of(event)}";' in interface
        assert f"  | {event.__name__}" in union.split(";")[0]


def test_field_that_the_wire_may_omit_is_optional() -> None:
    text = events_text()
    assert b"turn" not in msgspec.json.encode(Record(1, "r", 0, RunStarted(agent="demo")))
    assert "readonly turn?: number;" in text
    assert "/** False if the agent is configured to send complete texts instead of deltas. Absent: `true`. */" in text
    assert b"pending" in msgspec.json.encode(Todo("x"))
    assert "readonly status: TodoStatus;" in text
    assert "readonly error?: string;" in text, "None is the default, so null never comes"


def test_long_comments_and_unions_are_broken() -> None:
    comment = make_wire_types._comment("x" * 120)  # pyright: ignore[reportPrivateUsage]
    assert comment == f"/**\n * {'x' * 120}\n */\n"
