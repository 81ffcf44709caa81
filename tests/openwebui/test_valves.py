"""The valves of the administrator and of users: names, types and defaults, and their effect on a chat."""

from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from tests.openwebui.chat import USER, Chat, Output
from tests.openwebui.frame_server import FrameServer
from tests.openwebui.function_rules import Json, pipe_module

DOCUMENTED: dict[str, tuple[str, Any]] = {
    "DEEP_AGENT_URL": ("string", "http://localhost:8000"),
    "SHOW_TOOL_CITATIONS": ("boolean", True),
    "SHOW_SUBAGENT_STATUS": ("boolean", True),
    "REQUEST_TIMEOUT": ("integer", 300),
}
ADDED: dict[str, tuple[str, Any]] = {
    "API_KEY": ("string", ""),
    "DISPLAY": ("string", "native"),
    "RECONNECT_SECONDS": ("integer", 120),
    "PUBLIC_URL": ("string", ""),
}
DISPLAYS = ["native", "collapse", "details", "plain"]
STREAM = (Path(__file__).parents[1] / "dialects" / "golden" / "sub_agents.typed.sse").read_bytes()


@pytest.fixture
def all_statuses(monkeypatch: pytest.MonkeyPatch) -> None:
    """Show all statuses of a batch, as if the run were slow."""
    monkeypatch.setattr(pipe_module(), "MAX_STATUSES_PER_BATCH", 1000)


def form_fields(name: str) -> Json:
    """The fields as `GET …/valves/spec` gives them."""
    return getattr(pipe_module(), name).schema()["properties"]


@pytest.mark.filterwarnings("ignore:The `schema` method is deprecated")
def test_valves_have_documented_names_types_and_defaults() -> None:
    fields = {name: (field["type"], field["default"]) for name, field in form_fields("Valves").items()}
    assert fields == DOCUMENTED | ADDED
    assert all(field["description"] for field in form_fields("Valves").values())


@pytest.mark.filterwarnings("ignore:The `schema` method is deprecated")
def test_valves_form_hides_the_key_and_lists_the_displays() -> None:
    assert form_fields("Valves")["API_KEY"]["input"] == {"type": "password"}
    assert form_fields("Valves")["DISPLAY"]["enum"] == DISPLAYS


@pytest.mark.filterwarnings("ignore:The `schema` method is deprecated")
def test_user_valves_default_to_the_administrators_choice() -> None:
    fields = form_fields("UserValves")
    assert {name: field["default"] for name, field in fields.items()} == dict.fromkeys(fields, "default")
    assert fields["DISPLAY"]["enum"] == ["default", *DISPLAYS]
    assert fields["TOOL_CITATIONS"]["enum"] == fields["SUBAGENT_STATUS"]["enum"] == ["default", "show", "hide"]


@pytest.mark.parametrize("invalid", [{"DISPLAY": "fancy"}, {"REQUEST_TIMEOUT": 0}, {"RECONNECT_SECONDS": -1}])
def test_invalid_valve_is_refused(invalid: Json) -> None:
    with pytest.raises(ValidationError):
        pipe_module().Valves(**invalid)


def test_whitespace_around_a_valve_is_removed() -> None:
    valves = pipe_module().Valves(DEEP_AGENT_URL=" http://a:8000\n", API_KEY="\tsecret\r\n", PUBLIC_URL=" ")
    assert (valves.DEEP_AGENT_URL, valves.API_KEY, valves.PUBLIC_URL) == ("http://a:8000", "secret", "")


async def chat_output(server: FrameServer, user_valves: dict[str, str] | None = None, **valves: Any) -> Output:
    server.set_stream(STREAM)
    return await Chat(server.url, user={**USER, "valves": user_valves or {}}, **valves).send("go")


def display_of(output: Output) -> str:
    if output.items_of_type("function_call"):
        return "native"
    if any(isinstance(chunk, str) for chunk in output.chunks):
        return "details"
    return "collapse" if "Execution Steps (3 tools)" in output.text else "plain"


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize("display", DISPLAYS)
async def test_display_valve_of_the_user_overrides_the_administrators(server: FrameServer, display: str) -> None:
    assert display_of(await chat_output(server, DISPLAY=display)) == display
    assert display_of(await chat_output(server, {"DISPLAY": "default"}, DISPLAY=display)) == display
    for administrators in ("native", "plain"):
        assert display_of(await chat_output(server, {"DISPLAY": display}, DISPLAY=administrators)) == display


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize("display", DISPLAYS)
async def test_citations_valve_of_the_user_overrides_the_administrators(server: FrameServer, display: str) -> None:
    names = ["🔧 researcher › reader › readurl", "🔧 task"]
    assert list((await chat_output(server, DISPLAY=display)).sources) == names
    assert (await chat_output(server, DISPLAY=display, SHOW_TOOL_CITATIONS=False)).sources == {}
    assert (await chat_output(server, {"TOOL_CITATIONS": "hide"}, DISPLAY=display)).sources == {}
    output = await chat_output(server, {"TOOL_CITATIONS": "show"}, DISPLAY=display, SHOW_TOOL_CITATIONS=False)
    assert list(output.sources) == names


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.usefixtures("all_statuses")
async def test_subagent_status_valve_of_the_user_overrides_the_administrators(server: FrameServer) -> None:
    of_main_agent = ["Thinking...", "🔧 task...", "Complete"]
    output = await chat_output(server)
    assert "↳ 🤖 Sub-agent: researcher..." in output.statuses
    assert "↳ ↳ 🔧 readurl..." in output.statuses
    assert (await chat_output(server, SHOW_SUBAGENT_STATUS=False)).statuses == of_main_agent
    hidden = await chat_output(server, {"SUBAGENT_STATUS": "hide"})
    assert hidden.statuses == of_main_agent
    assert hidden.rows == output.rows
    shown = await chat_output(server, {"SUBAGENT_STATUS": "show"}, SHOW_SUBAGENT_STATUS=False)
    assert shown.statuses == output.statuses
