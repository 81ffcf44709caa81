"""The command against the real Open WebUI."""

import httpx

from tests.system.openwebui.chat import Chat
from tests.system.openwebui.conftest import Stage
from tests.system.openwebui.processes import EMAIL, PASSWORD


def test_a_second_installation_changes_nothing(stage: Stage) -> None:
    done = stage.install("--token", stage.token)
    assert done.returncode == 0, done.stderr
    assert "function deep_agent_pipe: up to date" in done.stdout
    assert "enabled: as before" in done.stdout
    assert "valves: as before" in done.stdout
    assert "Deep Agent Pipe · second" in done.stdout


def test_sign_in_by_address_and_share_with_everybody(stage: Stage, tab: Chat) -> None:
    done = stage.install("--email", EMAIL, "--share", OPEN_WEBUI_PASSWORD=PASSWORD)
    assert done.returncode == 0, done.stderr
    body = {"name": "Uma User", "email": "uma@example.org", "password": "hello hello"}
    stage.api("POST", "/api/v1/auths/add", {**body, "role": "user"})
    token = httpx.post(f"{stage.webui.url}/api/v1/auths/signin", json=body, timeout=30).json()["token"]
    headers = {"Authorization": f"Bearer {token}"}
    models = httpx.get(f"{stage.webui.url}/api/models", headers=headers, timeout=30).json()["data"]
    assert "Deep Agent Pipe" in [model["name"] for model in models]
    refused = stage.install("--token", token)
    assert refused.returncode == 2
    assert "uma@example.org is not an administrator" in refused.stderr


def test_what_is_wrong_is_said_in_a_line(stage: Stage) -> None:
    wrong = stage.install("--email", EMAIL, OPEN_WEBUI_PASSWORD="wrong")
    assert wrong.returncode == 2
    assert f"does not let {EMAIL} in" in wrong.stderr
    assert stage.install("--token", "x").stderr.startswith("limelight: Open WebUI refuses the token")
