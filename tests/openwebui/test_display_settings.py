"""What is shown, by the choice of the administrator, or of the user over it."""

from pathlib import Path
from typing import Any

import pytest

from tests.openwebui.chat import USER, Chat, Seen
from tests.openwebui.frame_server import Stage
from tests.openwebui.function_rules import pipe_module

pytestmark = pytest.mark.asyncio(loop_scope="module")

STREAM = (Path(__file__).parents[1] / "dialects" / "golden" / "sub_agents.typed.sse").read_bytes()


@pytest.fixture(autouse=True)
def all_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those too that a slower run would have shown."""
    monkeypatch.setattr(pipe_module(), "MAX_STATUSES_PER_BATCH", 1000)


async def shown(stage: Stage, user: dict[str, str] | None = None, **valves: Any) -> Seen:
    stage.play(STREAM)
    return await Chat(stage.url, user={**USER, "valves": user or {}}, **valves).say("go")


def display_of(seen: Seen) -> str:
    if seen.of_type("function_call"):
        return "native"
    if any(isinstance(chunk, str) for chunk in seen.chunks):
        return "details"
    return "collapse" if "Execution Steps (3 tools)" in seen.text else "plain"


@pytest.mark.parametrize("display", ["native", "collapse", "details", "plain"])
async def test_the_display(stage: Stage, display: str) -> None:
    assert display_of(await shown(stage, DISPLAY=display)) == display
    assert display_of(await shown(stage, {"DISPLAY": "default"}, DISPLAY=display)) == display
    for administrators in ("native", "plain"):
        assert display_of(await shown(stage, {"DISPLAY": display}, DISPLAY=administrators)) == display


@pytest.mark.parametrize("display", ["native", "collapse", "details", "plain"])
async def test_citations(stage: Stage, display: str) -> None:
    names = ["🔧 researcher › reader › readurl", "🔧 task"]
    assert list((await shown(stage, DISPLAY=display)).sources) == names
    assert (await shown(stage, DISPLAY=display, SHOW_TOOL_CITATIONS=False)).sources == {}
    assert (await shown(stage, {"TOOL_CITATIONS": "hide"}, DISPLAY=display)).sources == {}
    seen = await shown(stage, {"TOOL_CITATIONS": "show"}, DISPLAY=display, SHOW_TOOL_CITATIONS=False)
    assert list(seen.sources) == names


async def test_what_sub_agents_do_is_in_the_line_above_the_text_or_not(stage: Stage) -> None:
    main = ["Thinking...", "🔧 task...", "Complete"]
    seen = await shown(stage)
    assert "↳ 🤖 Sub-agent: researcher..." in seen.statuses
    assert "↳ ↳ 🔧 readurl..." in seen.statuses
    assert (await shown(stage, SHOW_SUBAGENT_STATUS=False)).statuses == main
    hidden = await shown(stage, {"SUBAGENT_STATUS": "hide"})
    assert hidden.statuses == main
    assert hidden.rows == seen.rows
    shown_again = await shown(stage, {"SUBAGENT_STATUS": "show"}, SHOW_SUBAGENT_STATUS=False)
    assert shown_again.statuses == seen.statuses
