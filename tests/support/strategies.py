"""What the tests of the core are fed with: any event, any order, and runs that are legal by the documented rules.

`events()` builds events from the fields of their structs, so that a new kind is covered without a change here.
Legal runs are written by `legal_runs`.
"""

import types
from collections.abc import Iterable, Sequence
from typing import Any, Literal, Union, get_args, get_origin

import msgspec
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from limelight.deltas import Delta
from limelight.display_fields import DisplayFields
from limelight.errors import BadEvent
from limelight.events import (
    EVENT_TYPES,
    AnyEvent,
    Event,
    Record,
    RunStarted,
)
from limelight.grammar import Grammar
from tests.support.legal_runs import ODD_ANSWERS, ODD_TEXTS, START, write_run

# How long one example takes depends on the load of the machine and is not tested.
settings.register_profile("limelight", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("limelight")

RUN_ID = "run_0"

LONE_SURROGATES = ("\ud83d", "\ude00 tail", "head \ud800", "\udfff\ud800")


# Single events


def texts(*, surrogates: bool = False) -> SearchStrategy[str]:
    """Text with odd characters; halves of surrogate pairs only where they are asked for."""
    proper = st.sampled_from(ODD_TEXTS) | st.text(st.characters(codec="utf-8"), max_size=40)
    return proper | st.sampled_from(LONE_SURROGATES) | st.text(max_size=20) if surrogates else proper


def json_values(*, surrogates: bool = False) -> SearchStrategy[Any]:
    """Any JSON value, not very deep."""
    text = texts(surrogates=surrogates)
    numbers = st.integers(-(2**80), 2**80) | st.floats(allow_nan=False, allow_infinity=False)
    return st.recursive(
        st.none() | st.booleans() | numbers | text,
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(text, inner, max_size=3),
        max_leaves=6,
    )


def of_type(hint: Any, text: SearchStrategy[str], value: SearchStrategy[Any]) -> SearchStrategy[Any]:
    """Values of a field's type, as events declare them."""
    origin, args = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType):
        return st.one_of([of_type(arg, text, value) for arg in args])
    if origin is Literal:
        return st.sampled_from(args)
    if origin is dict:
        return st.dictionaries(text, value, max_size=3)
    if origin is list:
        return st.lists(value, max_size=3)
    if origin is tuple:
        return st.lists(of_type(args[0], text, value), max_size=3).map(tuple)
    if isinstance(hint, type) and issubclass(hint, msgspec.Struct):
        return struct(hint, text, value)
    simple: dict[Any, SearchStrategy[Any]] = {
        str: text,
        bool: st.booleans(),
        int: st.integers(0, 2**53),
        float: st.floats(allow_nan=False, allow_infinity=False),
        type(None): st.none(),
        Any: value,
    }
    return simple[hint]


def struct(kind: type[msgspec.Struct], text: SearchStrategy[str], value: SearchStrategy[Any]) -> SearchStrategy[Any]:
    """Values of a struct; fields that have a default are sometimes left out."""
    fields = msgspec.structs.fields(kind)
    required = {f.name: of_type(f.type, text, value) for f in fields if f.required}
    optional = {f.name: of_type(f.type, text, value) for f in fields if not f.required}
    return st.fixed_dictionaries(required, optional=optional).map(lambda given: kind(**given))


def event_of(kind: type[Event], *, surrogates: bool = False) -> SearchStrategy[AnyEvent]:
    """Events of one kind."""
    return struct(kind, texts(surrogates=surrogates), json_values(surrogates=surrogates))


def events(*, surrogates: bool = False) -> SearchStrategy[AnyEvent]:
    """Events of any kind."""
    return st.one_of([event_of(kind, surrogates=surrogates) for kind in EVENT_TYPES])


def colliding_events() -> SearchStrategy[AnyEvent]:
    """Events of any kind that share a handful of ids, so that in a sequence many are legal and many are not."""
    ids = st.sampled_from(["", "a", "b", "c"])
    return st.one_of([struct(kind, ids, st.sampled_from([{}, "x", 1])) for kind in EVENT_TYPES])


# Whole runs


def tangled_runs(*, max_length: int = 60) -> SearchStrategy[list[AnyEvent]]:
    """Whatever the grammar lets through of random events whose ids collide, with every field that they may have.

    `legal_runs` are likelier, and these stranger: nothing here knows what a source would do.
    """
    return st.lists(_tangled_events(), max_size=max_length).map(lambda events: _let_through([_BEGIN, *events]))


_BEGIN = RunStarted(agent="demo", input="go")


def _tangled_events() -> SearchStrategy[AnyEvent]:
    ids, text = st.sampled_from(["", "a", "b", "c"]), texts() | st.sampled_from(ODD_ANSWERS)
    return st.one_of([_tangled(kind, ids, text) for kind in EVENT_TYPES if kind is not RunStarted])


def _tangled(kind: type[Event], ids: SearchStrategy[str], text: SearchStrategy[str]) -> SearchStrategy[AnyEvent]:
    special: dict[str, SearchStrategy[Any]] = {
        "number": st.integers(0, 2),
        "step_kind": st.sampled_from(["action", "planning", "odd"]),
        "message_id": ids | st.none() if "content" in kind.__struct_fields__ else ids,
        "name": texts(),  # a longer name would end the run
        "by": texts(),
    }
    fields = {field.name: of_type(field.type, text, json_values()) for field in msgspec.structs.fields(kind)}
    fields |= {name: ids for name in fields if name.endswith("_id")}
    fields |= {name: special[name] for name in fields.keys() & special.keys()}
    return st.fixed_dictionaries(fields).map(lambda given: kind(**given))  # pyright: ignore[reportReturnType]


def _let_through(events: Iterable[AnyEvent]) -> list[AnyEvent]:
    grammar, run = Grammar(), list[AnyEvent]()
    for event in events:
        try:
            grammar.check(event)
        except BadEvent:
            continue
        run.append(event)
    return run


@st.composite
def legal_runs(draw: st.DrawFn, *, max_length: int = 40, cut: bool | None = None) -> list[AnyEvent]:
    """A legal run: whole (`cut=False`), cut off somewhere (`cut=True`), or either."""
    length = draw(st.integers(1, max_length))
    run = write_run(draw(st.randoms(use_true_random=False)), length)
    if draw(st.booleans()) if cut is None else cut:
        return run[: draw(st.integers(1, len(run) - 1))]
    return run


def as_records(events: Sequence[AnyEvent], *, run_id: str = RUN_ID, first_seq: int = 1) -> list[Record]:
    """Number events and add their derived fields, as the engine does."""
    present = DisplayFields().add_to
    return [Record(seq, run_id, START + 3 * seq, present(event)) for seq, event in enumerate(events, start=first_seq)]


def text_sums(records: Iterable[Record]) -> dict[str, str]:
    """Each streamed text of a run as a whole: what joining and splitting must not change."""
    sums: dict[str, str] = {}
    for record in records:
        if isinstance(record.event, Delta):
            fields = msgspec.structs.asdict(record.event)
            text = fields.pop("text")
            key = f"{type(record.event).__name__} {fields}"
            sums[key] = sums.get(key, "") + text
    return sums
