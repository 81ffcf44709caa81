"""A copy of an agent or team for one turn. The user's own object is never changed, and serves many turns at once.

Agno's `deep_copy` is what its own server uses. What belongs to the user beyond the agent stays shared: tools with their
state, hooks, dependencies. Agno copies each tool for each run anyway. The copy's model tells what it refuses, and
ordinary functions that Agno would call on the loop run in threads.
"""

from typing import Any, cast

from limelight.sources.agno.rejected_calls import telling
from limelight.sources.agno.threaded_functions import off_loop

SHARED = ("tools", "dependencies", "tool_hooks", "pre_hooks", "post_hooks", "knowledge_retriever")
ALL_RUNS = None
"""For `num_history_runs`: every earlier turn."""
AGNOS_OWN = 3
"""The number of earlier turns that Agno's constructor fills in if nobody gave one."""


def copied(target: Any, **changes: Any) -> Any:
    """The agent or team, with its members, and with these fields changed."""
    update = {name: getattr(target, name) for name in SHARED if getattr(target, name, None) is not None}
    update |= off_loop(target)
    members = getattr(target, "members", None)
    if isinstance(members, list):
        update["members"] = [_member(member) for member in cast("list[Any]", members)]
    copy = target.deep_copy(update={**update, **changes})
    copy.model = telling(copy.model)
    return copy


def _member(member: Any) -> Any:
    return copied(member) if hasattr(member, "deep_copy") else member


def for_turn(target: Any, db: Any, instructions: str) -> Any:
    """A copy that remembers in this database, unless it has its own, and is told these things besides."""
    changes: dict[str, Any] = {}
    if not target.id and not target.name:
        changes["id"] = "agent"  # Agno would make one up, another one each time
    if target.db is None:
        changes |= {"db": db, "add_history_to_context": True}
    if instructions:
        changes |= _told(target, instructions)
    copy = copied(target, **changes)
    if target.db is None:
        _all_of_it(copy)
    copy.set_id()
    return copy


def with_past(copy: Any) -> None:
    """Let a copy look at its past, if it does not: at all of it, as nobody has said how much."""
    if not copy.add_history_to_context:
        copy.add_history_to_context = True
        _all_of_it(copy)


def _all_of_it(copy: Any) -> None:
    if copy.num_history_messages is None and copy.num_history_runs in (None, AGNOS_OWN):
        copy.num_history_runs = ALL_RUNS


def _told(target: Any, instructions: str) -> dict[str, Any]:
    """Where Agno takes more instructions: behind its own system message, or behind the one that the user wrote."""
    field = "system_message" if isinstance(target.system_message, str) else "additional_context"
    before = getattr(target, field) or ""
    return {field: f"{before}\n\n{instructions}" if before else instructions}
