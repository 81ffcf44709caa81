"""`limelight openwebui install` against a real Open WebUI."""

import httpx
import pytest

from tests.support.wait import DEADLINE
from tests.system.openwebui.chat import Chat
from tests.system.openwebui.conftest import Environment
from tests.system.openwebui.processes import EMAIL, PASSWORD


@pytest.mark.requirement("pipe-install")
def test_second_installation_changes_nothing(environment: Environment) -> None:
    result = environment.install("--token", environment.token)
    assert result.returncode == 0, result.stderr
    assert "function deep_agent_pipe: up to date" in result.stdout
    assert "enabled: as before" in result.stdout
    assert "valves: as before" in result.stdout
    assert "Deep Agent Pipe · second" in result.stdout


def test_share_makes_the_models_visible_to_other_users(environment: Environment, tab: Chat) -> None:
    result = environment.install("--email", EMAIL, "--share", OPEN_WEBUI_PASSWORD=PASSWORD)
    assert result.returncode == 0, result.stderr
    body = {"name": "Uma User", "email": "uma@example.org", "password": "hello hello"}
    environment.api("POST", "/api/v1/auths/add", {**body, "role": "user"})
    token = httpx.post(f"{environment.webui.url}/api/v1/auths/signin", json=body, timeout=DEADLINE).json()["token"]
    headers = {"Authorization": f"Bearer {token}"}
    models = httpx.get(f"{environment.webui.url}/api/models", headers=headers, timeout=DEADLINE).json()["data"]
    assert "Deep Agent Pipe" in [model["name"] for model in models]
    refused = environment.install("--token", token)
    assert refused.returncode == 2
    assert "uma@example.org is not an administrator" in refused.stderr


def test_wrong_credentials_are_an_error_of_one_line(environment: Environment) -> None:
    wrong = environment.install("--email", EMAIL, OPEN_WEBUI_PASSWORD="wrong")
    assert wrong.returncode == 2
    assert f"refused the sign-in of {EMAIL}" in wrong.stderr
    assert environment.install("--token", "x").stderr.startswith("limelight: Open WebUI refuses the token")
