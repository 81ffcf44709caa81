"""What an administrator and a user can choose: names, types and defaults, and the form that Open WebUI draws."""

from typing import Any

import pytest
from pydantic import ValidationError

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


def form(name: str) -> Json:
    """The fields as `GET …/valves/spec` gives them."""
    return getattr(pipe_module(), name).schema()["properties"]


@pytest.mark.filterwarnings("ignore:The `schema` method is deprecated")
def test_the_valves_are_the_documented_ones_and_a_few_more() -> None:
    found = {name: (field["type"], field["default"]) for name, field in form("Valves").items()}
    assert found == DOCUMENTED | ADDED
    assert all(field["description"] for field in form("Valves").values())


@pytest.mark.filterwarnings("ignore:The `schema` method is deprecated")
def test_the_key_is_not_shown_and_the_display_is_chosen_from_a_list() -> None:
    assert form("Valves")["API_KEY"]["input"] == {"type": "password"}
    assert form("Valves")["DISPLAY"]["enum"] == DISPLAYS


@pytest.mark.filterwarnings("ignore:The `schema` method is deprecated")
def test_users_choose_what_they_see_and_otherwise_the_administrator_does() -> None:
    fields = form("UserValves")
    assert {name: field["default"] for name, field in fields.items()} == dict.fromkeys(fields, "default")
    assert fields["DISPLAY"]["enum"] == ["default", *DISPLAYS]
    assert fields["TOOL_CITATIONS"]["enum"] == fields["SUBAGENT_STATUS"]["enum"] == ["default", "show", "hide"]


@pytest.mark.parametrize("wrong", [{"DISPLAY": "fancy"}, {"REQUEST_TIMEOUT": 0}, {"RECONNECT_SECONDS": -1}])
def test_a_value_that_cannot_work_is_refused_when_it_is_saved(wrong: Json) -> None:
    with pytest.raises(ValidationError):
        pipe_module().Valves(**wrong)


def test_what_was_pasted_around_a_value_is_no_part_of_it() -> None:
    valves = pipe_module().Valves(DEEP_AGENT_URL=" http://a:8000\n", API_KEY="\tsecret\r\n", PUBLIC_URL=" ")
    assert (valves.DEEP_AGENT_URL, valves.API_KEY, valves.PUBLIC_URL) == ("http://a:8000", "secret", "")
