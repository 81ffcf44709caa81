"""Where the rows of sub-agents stand, and what rows say."""

import pytest

from tests.openwebui.display_frames import Shown


def started(shown: Shown, tool_id: str, agent_id: str = "", depth: int = 0) -> None:
    shown.feed("tool_start", tool_id=tool_id, name=tool_id, args={}, agent_id=agent_id, agent_depth=depth)


def test_rows_of_an_agent_stand_behind_those_of_its_own_sub_agents() -> None:
    shown = Shown()
    started(shown, "task")
    shown.feed("agent_start", agent_id="a", name="a", depth=1, parent_id="", tool_id="task")
    started(shown, "ask", "a", 1)
    shown.feed("agent_start", agent_id="b", name="b", depth=2, parent_id="a", tool_id="ask")
    started(shown, "b1", "b", 2)
    shown.feed("agent_start", agent_id="c", name="c", depth=3, parent_id="b")
    started(shown, "c1", "c", 3)
    started(shown, "a2", "a", 1)
    started(shown, "b2", "b", 2)
    started(shown, "a3", "a", 1)
    started(shown, "last")
    shown.flush()
    rows = [name.rpartition(" › ")[2].partition(" ")[0] for name in shown.names]
    assert rows == ["a", "b", "b1", "c", "c1", "b2", "a2", "a3", "last"]


def test_rows_of_agents_side_by_side_stay_with_their_own() -> None:
    shown = Shown()
    for name in ("a", "b"):
        started(shown, f"task-{name}")
        shown.feed("agent_start", agent_id=name, name=name, depth=1, parent_id="", tool_id=f"task-{name}")
    for tool, agent in (("b1", "b"), ("a1", "a"), ("b2", "b"), ("a2", "a")):
        started(shown, tool, agent, 1)
    shown.flush()
    rows = [name.rpartition(" › ")[2].partition(" ")[0] for name in shown.names]
    assert rows == ["a", "a1", "a2", "b", "b1", "b2"]


def test_agents_that_call_themselves_their_own_parents_are_shown_all_the_same() -> None:
    shown = Shown()
    shown.feed("agent_start", agent_id="a", name="a", depth=1, parent_id="a")
    started(shown, "a1", "a", 1)
    shown.flush()
    assert len(shown.names) == 2


@pytest.mark.parametrize("display", ["native", "collapse", "details"])
def test_a_call_whose_result_was_not_seen_says_so_and_has_not_failed(display: str) -> None:
    shown = Shown(display)
    started(shown, "mail")
    shown.feed("tool_end", tool_id="mail", name="mail", result="No result seen", agent_depth=0, result_seen=False)
    shown.close()
    seen = str(shown.chunks)
    assert "no result seen" in seen.lower()
    assert "failed" not in seen and "Error" not in seen
