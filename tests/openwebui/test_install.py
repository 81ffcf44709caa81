"""The commands of `limelight openwebui` against a fake of Open WebUI. `tests/system/openwebui` has a real one."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from typer.testing import CliRunner

from limelight.auth.key_file import Keyring
from limelight.cli import app
from limelight.errors import SetupError
from limelight.openwebui.api_client import OpenWebUI
from tests.client.server_thread import serve_in_thread
from tests.openwebui.fake_openwebui import ADMIN, CREDENTIALS, FakeWebUI, running_fake_webui
from tests.openwebui.function_rules import FILE, FUNCTION_ID
from tests.system.processes.agents import hello
from tests.system.processes.server_process import free_port

TEXT = FILE.read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def running_webui() -> Iterator[FakeWebUI]:
    with running_fake_webui() as fake:
        yield fake


@pytest.fixture
def webui(running_webui: FakeWebUI, monkeypatch: pytest.MonkeyPatch) -> FakeWebUI:
    for name in ("OPEN_WEBUI_TOKEN", "OPEN_WEBUI_PASSWORD", "LIMELIGHT_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    running_webui.clear()
    return running_webui


def install(webui: FakeWebUI, *options: str, token: str = "token-1", **more: Any) -> list[str]:
    """The output of the command."""
    who = ["--token", token] if token else []
    result = CliRunner().invoke(app, ["openwebui", "install", "--url", webui.url, *who, *options], **more)
    if result.exception:
        raise result.exception
    return result.stdout.splitlines()


def install_error(webui: FakeWebUI, *options: str, **more: Any) -> str:
    """The error of the command, which must not change anything."""
    with pytest.raises(SetupError) as caught:
        install(webui, *options, **more)
    assert webui.writes == []
    return caught.value.detail


def test_first_installation_creates_enables_and_configures_the_pipe(webui: FakeWebUI) -> None:
    assert install(webui, "--server", "http://agents:8000", "--api-key", "sesame", "--display", "collapse") == [
        f"Open WebUI 0.12.4 at {webui.url}",
        "function deep_agent_pipe: created",
        "enabled: yes, it is now",
        "valves: DEEP_AGENT_URL=http://agents:8000, API_KEY=…, DISPLAY=collapse",
        "models: Name of deep_agent_pipe.default, Name of deep_agent_pipe.other",
        "note: only administrators see these models until you share them (--share, or Admin Panel, Settings)",
    ]
    function = webui.functions[FUNCTION_ID]
    assert (function["content"], function["name"], function["is_active"]) == (TEXT, "Deep Agent Pipe", True)
    assert webui.valves[FUNCTION_ID]["API_KEY"] == "sesame"


def test_second_installation_changes_nothing(webui: FakeWebUI) -> None:
    install(webui, "--server", "http://agents:8000")
    webui.writes.clear()
    lines = install(webui, "--server", "http://agents:8000")
    assert lines[1:4] == ["function deep_agent_pipe: up to date", "enabled: as before", "valves: as before"]
    assert webui.writes == []


def test_older_pipe_is_updated_and_keeps_its_valves(webui: FakeWebUI) -> None:
    install(webui, "--server", "http://agents:8000", "--api-key", "sesame")
    webui.functions[FUNCTION_ID]["content"] = TEXT.replace("version:", "version: 0.0.1 was")
    webui.functions[FUNCTION_ID]["meta"]["description"] = "Ours."
    lines = install(webui, "--display", "details")
    assert lines[1:4] == ["function deep_agent_pipe: updated", "enabled: as before", "valves: DISPLAY=details"]
    function = webui.functions[FUNCTION_ID]
    assert (function["content"], function["meta"]["description"]) == (TEXT, "Ours.")
    expected = {"DEEP_AGENT_URL": "http://agents:8000", "API_KEY": "sesame", "DISPLAY": "details"}
    assert webui.valves[FUNCTION_ID] == expected


def test_disabled_pipe_is_enabled(webui: FakeWebUI) -> None:
    install(webui)
    webui.functions[FUNCTION_ID]["is_active"] = False
    assert install(webui)[2] == "enabled: yes, it is now"
    assert webui.functions[FUNCTION_ID]["is_active"]


def test_single_model_gives_a_hint(webui: FakeWebUI) -> None:
    webui.agents = ["default"]
    assert "note: the default model alone: does Open WebUI reach the Limelight server at DEEP_AGENT_URL?" in install(
        webui
    )


def test_share_creates_public_models_once(webui: FakeWebUI) -> None:
    name = "Name of deep_agent_pipe"
    assert install(webui, "--share")[-1] == f"shared with all users: {name}.default, {name}.other"
    grants = [model["access_grants"] for model in webui.shared.values()]
    assert grants == [[{"principal_type": "user", "principal_id": "*", "permission": "read"}]] * 2
    webui.writes.clear()
    assert install(webui, "--share")[-1] == "shared with all users: as before"
    assert webui.writes == []


GROUP_GRANT = {"principal_type": "group", "principal_id": "*", "permission": "read"}


@pytest.mark.parametrize(
    "access", [{"access_grants": []}, {"access_grants": [GROUP_GRANT]}, {"access_control": {"read": {}}}]
)
def test_share_reports_restricted_models_and_does_not_change_them(webui: FakeWebUI, access: Any) -> None:
    name = "Name of deep_agent_pipe"
    webui.shared["deep_agent_pipe.other"] = {"id": "deep_agent_pipe.other", **access}
    *_, shared, private = install(webui, "--share")
    assert shared == f"shared with all users: {name}.default"
    assert private.startswith(f"not shared: {name}.other: an administrator has restricted them; make them public under")
    assert install(webui, "--share")[-1] == private
    assert "as before" not in install(webui, "--share")[-2]
    assert webui.shared["deep_agent_pipe.other"] == {"id": "deep_agent_pipe.other", **access}


def test_model_of_an_older_version_without_access_control_is_public(webui: FakeWebUI) -> None:
    for agent in webui.agents:
        webui.shared[f"deep_agent_pipe.{agent}"] = {"id": f"deep_agent_pipe.{agent}", "access_control": None}
    assert install(webui, "--share")[-1] == "shared with all users: as before"


def test_sign_in_with_email_and_password(webui: FakeWebUI, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = install(webui, "--email", ADMIN["email"], token="", input="correct horse\n")
    assert "function deep_agent_pipe: created" in lines
    assert "correct horse" not in "".join(lines)
    monkeypatch.setenv("OPEN_WEBUI_PASSWORD", "correct horse")
    assert "function deep_agent_pipe: up to date" in install(webui, "--email", ADMIN["email"], token="")


def test_token_is_read_from_the_environment(webui: FakeWebUI, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPEN_WEBUI_TOKEN", "token-1")
    assert "function deep_agent_pipe: created" in install(webui, token="")


@pytest.mark.parametrize(
    ("options", "token", "error"),
    [
        (("--email", ADMIN["email"]), "", f"Open WebUI refused the sign-in of {ADMIN['email']}: {CREDENTIALS}"),
        ((), "stale", "Open WebUI refuses the token: sign in with --email, or make a new API key"),
        ((), "token-2", "uma@example.org is not an administrator of Open WebUI (role user): sign in as one"),
        ((), "", "name an administrator of Open WebUI: with --token, or with --email"),
        (("--email", "x@example.org"), "token-1", "name an administrator of Open WebUI: with --token, or with --email"),
    ],
)
def test_installation_without_a_valid_administrator_is_an_error(
    webui: FakeWebUI, options: tuple[str, ...], token: str, error: str
) -> None:
    assert install_error(webui, *options, token=token, input="wrong\n") == error


def test_email_option_overrides_a_token_of_the_environment(webui: FakeWebUI, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPEN_WEBUI_TOKEN", "stale")
    lines = install(webui, "--email", ADMIN["email"], token="", input="correct horse\n")
    assert "function deep_agent_pipe: created" in lines


@pytest.mark.parametrize("by_email", [True, False])
def test_redirect_of_the_address_is_followed(webui: FakeWebUI, by_email: bool) -> None:
    redirected = FakeWebUI()
    redirected.url = f"{webui.url}/old"
    who = ("--email", ADMIN["email"]) if by_email else ()
    lines = install(redirected, *who, token="" if by_email else "token-1", input="correct horse\n")
    assert [line for line in lines if not line.startswith("Password")][:3] == [
        f"Open WebUI 0.12.4 at {webui.url}",
        f"note: {redirected.url} redirects there",
        "function deep_agent_pipe: created",
    ]
    assert webui.functions[FUNCTION_ID]["is_active"]


def test_redirect_to_http_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def respond(client: httpx.Client, method: str, path: str, **_: Any) -> httpx.Response:
        return httpx.Response(200, json={"version": "0.12.4"}, request=httpx.Request(method, f"http://webui{path}"))

    monkeypatch.setattr(httpx.Client, "request", respond)
    with (
        OpenWebUI("https://webui") as webui,
        pytest.raises(SetupError, match="https://webui redirects to http://webui"),
    ):
        webui.version()


PAGES = {
    "/api/v1/auths/signin": "the sign-in",
    "/api/v1/auths/": "the user of the token",
    "/api/v1/functions/": "the list of functions",
    "/api/v1/functions/create": "create the function",
    f"/api/v1/functions/id/{FUNCTION_ID}/toggle": "enable the function",
    f"/api/v1/functions/id/{FUNCTION_ID}/valves": "the valves",
    "/api/models": "the list of models",
}


@pytest.mark.parametrize("path", PAGES)
def test_page_in_place_of_json_is_an_error(webui: FakeWebUI, path: str) -> None:
    webui.pages = {path}
    with pytest.raises(SetupError) as caught:
        install(webui, "--email", ADMIN["email"], token="", input="correct horse\n")
    expected = f"{webui.url} does not answer like Open WebUI when asked for {PAGES[path]}: is the address right"
    assert caught.value.detail.startswith(expected)


def test_unreachable_address_is_an_error(webui: FakeWebUI) -> None:
    gone = FakeWebUI()
    gone.url = f"http://127.0.0.1:{free_port()}"
    assert f"Open WebUI cannot be reached at {gone.url}" in install_error(gone)
    for wrong in ("http://[::1", "localhost:8080"):
        gone.url = wrong
        assert install_error(gone)


def test_other_program_at_the_address_is_an_error(webui: FakeWebUI) -> None:
    webui.version = None
    assert "does not respond like Open WebUI" in install_error(webui)


@pytest.mark.parametrize(("version", "missing_prefix"), [("0.4.8", ""), ("0.2.5", "/api/v1")])
def test_version_without_pipes_is_an_error(webui: FakeWebUI, version: str, missing_prefix: str) -> None:
    webui.version, webui.missing_prefix = version, missing_prefix
    assert install_error(webui, "--display", "details") == f"Open WebUI {version} is too old: update it to 0.8 or newer"


def test_version_without_output_items_needs_the_display_details(webui: FakeWebUI) -> None:
    webui.version = "0.7.2"
    assert "add --display details" in install_error(webui)
    assert "valves: DISPLAY=details" in install(webui, "--display", "details")


def test_other_function_with_the_same_id_is_an_error(webui: FakeWebUI) -> None:
    webui.functions[FUNCTION_ID] = {"id": FUNCTION_ID, "type": "filter", "is_active": True, "content": "x", "meta": {}}
    assert "there is another function with the id deep_agent_pipe" in install_error(webui)


def test_pipe_command_prints_the_file() -> None:
    result = CliRunner().invoke(app, ["openwebui", "pipe"])
    assert (result.exit_code, result.stdout) == (0, TEXT)


@pytest.mark.parametrize("token", ["tok\nen-1", "tökén-1", "token-1\x7f"])
def test_error_about_an_invalid_token_does_not_contain_it(webui: FakeWebUI, token: str) -> None:
    error = install_error(webui, token=token)
    assert "--token" in error
    assert "en-1" not in error and "tok\\n" not in error


def test_whitespace_around_a_token_is_removed(webui: FakeWebUI) -> None:
    assert install(webui, token=" token-1\n")[1] == "function deep_agent_pipe: created"


def test_key_without_the_scope_on_behalf_of_gives_a_warning(webui: FakeWebUI, tmp_path: Path) -> None:
    keyring = Keyring(tmp_path / "data")
    of_one = keyring.create("ann", ("use",), 1)[1]
    of_all = keyring.create("open-webui", ("use", "on-behalf-of"), 1)[1]
    with serve_in_thread(hello, data=tmp_path / "data") as served:
        warnings = {key: warning(webui, served.url, key) for key in (of_one, of_all, "wrong")}
    assert "all chats belong to ann" in warnings[of_one]
    assert warnings[of_all] == ""
    assert "refuses the API key" in warnings["wrong"]
    assert warning(webui, served.url, of_one) == ""  # the server may be unreachable from this machine


def warning(webui: FakeWebUI, server: str, key: str) -> str:
    command = ["openwebui", "install", "--url", webui.url, "--token", "token-1", "--server", server, "--api-key", key]
    return CliRunner().invoke(app, command, catch_exceptions=False).stderr
