"""A server without keys refuses requests through a proxy, whatever its configuration."""

from pathlib import Path

import httpx
import pytest

from tests.system.openwebui.processes import limelight
from tests.system.proxy.conftest import AGENTS_FILE
from tests.system.proxy.proxies import plain_nginx


@pytest.mark.requirement("open-server-local")
def test_open_server_refuses_requests_through_nginx_without_settings(tmp_path: Path) -> None:
    with (
        limelight(tmp_path / "open", f"{AGENTS_FILE}:stage", LIMELIGHT_API_KEY="") as server,
        plain_nginx(tmp_path / "nginx", server) as url,
    ):
        assert httpx.get(f"{server.url}/agents", trust_env=False).status_code == 200
        refused = httpx.get(f"{url}/agents", trust_env=False)
        assert (refused.status_code, refused.json()["code"]) == (403, "forbidden")
        assert httpx.get(f"{url}/health", trust_env=False).status_code == 200
