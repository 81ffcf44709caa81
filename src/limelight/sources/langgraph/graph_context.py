"""What a graph is told about the turn: for whom it works, and where. Pure.

Every graph finds it in its config, under `configurable`. One with a `context_schema` also finds it in its context, in
those of the fields that have these names.
"""

from typing import Any, get_type_hints

from limelight.sources.base import Context


def known(context: Context) -> dict[str, str]:
    """What can be told."""
    return {
        "session_id": context.session_id,
        "run_id": context.run_id,
        "user_id": context.user.user_id,
        "user_name": context.user.name,
    }


def graph_context(schema: Any, context: Context) -> dict[str, str] | None:
    """The context of a graph that wants one; its other fields need defaults."""
    if not isinstance(schema, type):
        return None
    fields = get_type_hints(schema)
    return {name: value for name, value in known(context).items() if name in fields}
