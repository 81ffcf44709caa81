"""A server without keys behind a proxy that somebody put there without thinking: it lets no stranger in."""

from pathlib import Path

import httpx

from e2e.openwebui.stage import limelight
from e2e.proxy.conftest import CAST
from e2e.proxy.stage import plain_nginx


def test_nginx_without_settings_gets_nobody_in(tmp_path: Path) -> None:
    with (
        limelight(tmp_path / "open", f"{CAST}:stage", LIMELIGHT_API_KEY="") as server,
        plain_nginx(tmp_path / "nginx", server) as url,
    ):
        assert httpx.get(f"{server.url}/agents", trust_env=False).status_code == 200
        refused = httpx.get(f"{url}/agents", trust_env=False)
        assert (refused.status_code, refused.json()["code"]) == (403, "forbidden")
        assert httpx.get(f"{url}/health", trust_env=False).status_code == 200
